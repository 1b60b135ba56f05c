/** The state of an open conversation: the fold of its log, updated with each stored event. */
import type { EventLog } from '../../events/event-log.ts'
import type { State } from '../../state/state.ts'
import { fold } from '../../state/state.ts'

/** The state of an agent: of a subagent, as `stateOf` returns it. */
export type AgentView = Pick<LiveState, 'current'>

export class LiveState {
  #current: State

  /** `state` is the fold of the whole log. This must be the first subscriber: all others read the folded state. */
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
