/**
 * Refuses what `fetch` cannot send, or would send as something else: its errors look like those of a lost connection, and
 * quote the value, which may be a key. Programs without types can pass anything.
 */
import { AgentServerError } from './agent-server-error.ts'

type HeaderFields = Readonly<Record<string, string>>

/** Joins headers: the last source with a name counts, whatever its case. */
export function sendableHeaders(...sources: readonly (HeaderFields | undefined)[]): Record<string, string> {
  const all = new Headers()
  try {
    for (const source of sources) for (const [name, value] of new Headers(source)) all.set(name, value)
  } catch {
    throw mistake('A header cannot be sent: its name or its value has a character that HTTP does not allow.')
  }
  return Object.fromEntries(all)
}

/** Absent is fine. */
export function requireSignal(signal: unknown): void {
  if (signal === undefined || signal === null) return
  if (typeof signal !== 'object' || !('throwIfAborted' in signal))
    throw mistake('signal must be an AbortSignal, such as controller.signal.')
}

/** `fetch` would send an object as "[object Object]", and a `Blob` has one for each stream. */
export function requireContent(content: unknown, { canStream = false } = {}): void {
  if (typeof content === 'string' || ArrayBuffer.isView(content)) return
  // The name is compared: the classes of a page and of a test environment differ.
  const name = Object.prototype.toString.call(content).slice('[object '.length, -1)
  if (BYTES.has(name) || (canStream && name === 'ReadableStream')) return
  const streams = canStream ? ', and streams of Node with Readable.toWeb' : ''
  throw mistake(
    `The content of a file must be text, bytes${canStream ? ', a web stream' : ''} or a Blob. Write objects with JSON.stringify${streams}.`,
  )
}

const BYTES: ReadonlySet<string> = new Set(['ArrayBuffer', 'Blob', 'File'])

export const mistake = (what: string): AgentServerError => new AgentServerError('invalid_argument', what)
