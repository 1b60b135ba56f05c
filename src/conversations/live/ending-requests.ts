/**
 * Requests that end with their calls, outside the turns of the actor: their `RequestClosed` is being stored. An answer that
 * comes now is too late; one that is being stored counts.
 */
import type { EventDraft } from '../../contract/events/event.ts'
import type { EventLog } from '../../events/event-log.ts'

export class EndingRequests {
  readonly #log: Pick<EventLog, 'subscribe'>
  readonly #ids = new Set<string>()
  /** Undefined while there are none: other events cost nothing. */
  #unsubscribe: (() => void) | undefined
  #storing: Promise<unknown> = Promise.resolve()

  constructor({ log }: { readonly log: Pick<EventLog, 'subscribe'> }) {
    this.#log = log
  }

  get ids(): ReadonlySet<string> {
    return this.#ids
  }

  /** True if it waits and no call is about to close it. */
  readonly canBeAnswered = ({ request_id }: { readonly request_id: string }): boolean => !this.#ids.has(request_id)

  /** Runs `store`, which stores an answer or that a deadline has passed. Called in turn. */
  async storing(store: () => Promise<unknown>): Promise<void> {
    const storing = store()
    this.#storing = storing.catch(() => {})
    await storing
  }

  /** Calls `decide` when the answer that is being stored is in the state. The events that it returns will be stored. */
  async end<T extends { readonly events?: readonly EventDraft[] }>(decide: () => T): Promise<T> {
    await this.#storing
    const outcome = decide()
    for (const draft of outcome.events ?? []) if (draft.type === 'RequestClosed') this.#add(draft.request_id)
    return outcome
  }

  #add(requestId: string): void {
    this.#ids.add(requestId)
    this.#unsubscribe ??= this.#log.subscribe({
      onEvents: (events) => {
        for (const { event } of events) if (event.type === 'RequestClosed') this.#ids.delete(event.request_id)
        if (this.#ids.size > 0) return
        this.#unsubscribe?.()
        this.#unsubscribe = undefined
      },
    })
  }
}
