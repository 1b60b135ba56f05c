/** The history of an agent: read from the log for its first run, then kept current with each stored event. */
import type { History } from '../../agent/history/history.ts'
import type { RenderOutput } from '../../agent/history/tool-messages.ts'
import type { Event } from '../../contract/events/event.ts'
import type { EventLog } from '../../events/event-log.ts'
import type { OfAgent } from './read-history.ts'
import { readHistory } from './read-history.ts'

export class LiveHistory {
  /** Weak: only the work of the agent keeps it, so that an idle conversation holds no messages that memory is needed for. */
  #history: WeakRef<History> | undefined
  /** The events that are stored while it is being read. */
  #meanwhile: Event[] | undefined

  /** Receives each durable event of the conversation. */
  take(event: Event): void {
    this.#meanwhile?.push(event)
    // The messages are others then: they are read again.
    if (event.type === 'Rewound') this.#history = undefined
    this.#history?.deref()?.add(event)
  }

  /** Throws the signal's reason when it is aborted. */
  async load(
    log: Pick<EventLog, 'read' | 'head'>,
    render: RenderOutput,
    signal: AbortSignal,
    agent: OfAgent,
  ): Promise<History> {
    const knownHistory = this.#history?.deref()
    // A result that could not be stored is in the history, and not in the log.
    if (knownHistory && !knownHistory.isExpecting) return knownHistory
    this.#history = undefined
    const meanwhile: Event[] = []
    this.#meanwhile = meanwhile
    try {
      const { head } = log
      const history = await readHistory(log, render, head, signal, agent)
      // The head may have been one step ahead of the subscribers.
      for (const event of meanwhile) if (event.seq > head) history.add(event)
      this.#history = new WeakRef(history)
      return history
    } finally {
      this.#meanwhile = undefined
    }
  }
}
