/** The state of an open conversation: the fold of its log, kept up to date with each event that is stored. */
import type { EventLog } from '../../events/event-log.ts'
import type { State } from './state.ts'
import { fold } from './state.ts'

export class LiveState {
  #current: State

  /** `state` is the fold of the log as it stands. Nothing may have subscribed before: all others read what is folded here. */
  constructor(state: State, log: Pick<EventLog, 'subscribe'>) {
    this.#current = state
    log.subscribe({
      onEvents: (events) => {
        for (const { event } of events) this.#current = fold(this.#current, event)
      },
    })
  }

  get current(): State {
    return this.#current
  }
}
