/** The history of an agent while it works: read from the log once, then kept current with each stored event. */
import type { History } from '../../agent/history/history.ts'
import type { RenderOutput } from '../../agent/tool-messages.ts'
import type { Event } from '../../contract/events/event.ts'
import type { EventLog } from '../../events/event-log.ts'
import type { OfAgent } from './read-history.ts'
import { readHistory } from './read-history.ts'

export class LiveHistory {
  /** Kept only while the agent works: an idle conversation holds no messages in memory. */
  #history: Pick<History, 'add'> | undefined

  /** Receives each durable event of the conversation. */
  take(event: Event): void {
    this.#history?.add(event)
  }

  /** Throws the signal's reason when it is aborted. */
  async load(
    log: Pick<EventLog, 'read' | 'head'>,
    render: RenderOutput,
    signal: AbortSignal,
    agent: OfAgent,
  ): Promise<History> {
    // Events appended during the read follow it.
    const meanwhile: Event[] = []
    this.#history = { add: (event) => meanwhile.push(event) }
    const { head } = log
    const history = await readHistory(log, render, head, signal, agent)
    // The head may have been one step ahead of the subscribers.
    for (const event of meanwhile) if (event.seq > head) history.add(event)
    this.#history = history
    return history
  }

  forget(): void {
    this.#history = undefined
  }
}
