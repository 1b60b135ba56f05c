/** The subagents of a conversation, which are built when the agent calls one, or when the log has an open one. */
import { Feature } from './agents/feature.ts'
import type { LiveState } from './live-state.ts'
import type { TaskAccess } from '../tools/task/task-access.ts'
import { listAgents } from './subagents/definitions.ts'
import type { Subagents } from './subagents/subagents.ts'

export class UsedSubagents extends Feature<Subagents> {
  readonly #state: LiveState
  #run: AbortSignal | undefined

  constructor(state: LiveState, build: () => Subagents) {
    super(build, () => state.current.subagents.length > 0)
    this.#state = state
  }

  /** A run of the main agent begins to work, until the signal is aborted. */
  enter(signal: AbortSignal): void {
    this.#run = signal
    this.current?.enter(signal)
  }

  override use(): Subagents {
    const isNew = this.built === undefined
    const subagents = super.use()
    if (isNew && this.#run) subagents.enter(this.#run)
    return subagents
  }

  /** For the tools of the main agent. */
  get access(): TaskAccess {
    return {
      agents: () => listAgents(this.#state.current.settings),
      run: (input, context) => this.use().accessOf().run(input, context),
    }
  }
}
