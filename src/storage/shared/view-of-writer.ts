import type { LogView } from '../../events/event-store.ts'

/** Shows what is durable now: a writer has more during a write. Its `read` fails when the writer is closed. */
export function viewOf(writer: Pick<LogView, 'head' | 'read'>): LogView {
  const { head } = writer
  return {
    head,
    read: (options) => writer.read({ ...options, beforeSeq: Math.min(options.beforeSeq ?? Infinity, head + 1) }),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}
