/** Records which logs a server opens. */
import { createJsonlStore } from '../../src/storage/files/log/jsonl-store.ts'
import type { BenchLogs } from './fixtures.ts'

/** `opened`: the ids of the logs that were opened, in their order. */
export function recordOpenedLogs() {
  const opened: string[] = []
  const home = { directory: '' }
  const logs: BenchLogs = {
    home,
    create: (...args) => createJsonlStore(home).create(...args),
    copy: (...args) => createJsonlStore(home).copy(...args),
    open: (id) => (opened.push(id), createJsonlStore(home).open(id)),
    delete: (id) => createJsonlStore(home).delete(id),
  }
  return { opened, logs }
}
