/** What the parts that answer for the program share: what they need, and the work that is open. */
import type { ConversationHandle } from '../../client/conversation/conversation-handle.ts'
import { AgentServerError } from '../../client/request/agent-server-error.ts'

export type ResponderDeps = {
  readonly conversation: ConversationHandle
  /** Ends the query with this error. */
  readonly fail: (error: unknown) => void
  /** Somebody has declined to answer: the query may be over. */
  readonly onDeclined: () => void
}

/** Somebody else was faster, or nobody waits for the answer any more. */
const SETTLED: ReadonlySet<string> = new Set([
  'already_answered',
  'conversation_deleted',
  'conversation_not_found',
  'input_changed',
  'request_closed',
  'request_not_found',
])

const isSettled = (error: unknown): error is AgentServerError =>
  error instanceof AgentServerError && SETTLED.has(error.code)

/** Work by the id of its call, with a signal for each, which aborts when the call ends without it. */
export class OpenWork {
  readonly #byId = new Map<string, AbortController>()
  readonly #fail: ResponderDeps['fail']

  constructor(fail: ResponderDeps['fail']) {
    this.#fail = fail
  }

  /** Starts the work unless it has begun. Errors of work that was aborted are expected. */
  start(id: string, work: (signal: AbortSignal) => Promise<void>): void {
    if (this.#byId.has(id)) return
    const controller = new AbortController()
    this.#byId.set(id, controller)
    work(controller.signal)
      .catch((error: unknown) => {
        if (!controller.signal.aborted && !isSettled(error)) this.#fail(error)
      })
      .finally(() => this.#byId.get(id) === controller && this.#byId.delete(id))
      .catch(() => {}) // `fail` does not throw
  }

  end(id: string): void {
    const controller = this.#byId.get(id)
    this.#byId.delete(id)
    controller?.abort(new DOMException('Nobody waits for the answer any more.', 'AbortError'))
  }

  endAll(): void {
    // A map may lose the entries that a loop has seen.
    for (const id of this.#byId.keys()) this.end(id)
  }
}

export const messageOf = (error: unknown): string => {
  try {
    return error instanceof Error ? error.message || error.name : String(error)
  } catch {
    return 'an error without a message'
  }
}
