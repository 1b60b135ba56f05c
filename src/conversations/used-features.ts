/** Features that a conversation pays for only if it uses them: they are built when they are needed. */
import { Feature } from './agents/feature.ts'
import { SlotRests } from './agents/slot-rests.ts'
import type { WorkingSlot } from './agents/working-slot.ts'
import type { LiveState } from './live/live-state.ts'
import type { TaskAccess } from '../tools/task/task-access.ts'
import { listAgents } from './subagents/definitions.ts'
import type { Subagents } from './subagents/subagents.ts'
import type { HookDeps, HookParts } from './hooks/build-hooks.ts'
import { buildHooks } from './hooks/build-hooks.ts'
import type { ConversationHooks } from './hooks/conversation-hooks.ts'

/** The hooks of a conversation: those of its settings, of its clients, and of the program that this server is part of. */
export const usedHooks = (deps: HookDeps, parts: HookParts): Feature<ConversationHooks> =>
  new Feature(
    () => buildHooks(deps, parts),
    () => {
      const { hooks, client_hooks } = parts.state.current.settings
      return hooks !== undefined || client_hooks !== undefined || inProcess(deps, parts.log.conversationId)
    },
  )

const inProcess = ({ callbacksOf }: HookDeps, id: string) => (callbacksOf?.(id).length ?? 0) > 0

/** The subagents of a conversation, which are built when the agent calls one, or when the log has an open one. */
export class UsedSubagents extends Feature<Subagents> {
  readonly #state: LiveState
  #run: WorkingSlot | undefined
  #rests: SlotRests | undefined

  constructor(state: LiveState, build: () => Subagents) {
    super(build, () => state.current.subagents.length > 0)
    this.#state = state
  }

  /** A run of the main agent begins to work in this slot. */
  enter(slot: WorkingSlot): void {
    this.#run = slot
    this.current?.enter(slot)
    this.#rests?.check()
  }

  /** The rests for the calls of all agents, also when there are no subagents. */
  get rests(): SlotRests {
    const slotOf = (agent: string | undefined) => (agent === undefined ? this.#run : this.built?.slotOf(agent))
    return (this.#rests ??= new SlotRests({ state: this.#state, slotOf }))
  }

  override use(): Subagents {
    const isNew = this.built === undefined
    const subagents = super.use()
    if (isNew && this.#run) subagents.enter(this.#run)
    return subagents
  }

  /** The access for the tools of the main agent. */
  get access(): TaskAccess {
    return {
      agents: () => listAgents(this.#state.current.settings),
      run: (input, context) => this.use().accessOf().run(input, context),
    }
  }
}
