/**
 * The slots in which agents work. Each agent that works has one, and lends it to its subagents in the foreground while it
 * waits for them: so one of them can always work, whatever the limits. Subagents in the background take further slots.
 *
 *     slots of the server ──┬─▶ run ──────────── lends ──▶ subagent ── lends ──▶ its subagent …
 *                           └─▶ in background ── lends ──▶ subagent …
 *
 * The settings of a conversation also limit its subagents: the slot of a subagent is one of its conversation and one of the
 * server.
 */
import type { WorkingSlot } from '../agents/working-slot.ts'
import type { SlotRequest } from '../../lib/queue.ts'
import { Queue } from '../../lib/queue.ts'
import type { Settings } from '../../state/settings.ts'
import type { DecisionWaits } from './decision-waits.ts'
import { limitsOf } from './definitions.ts'

/** Gives slots to agents. */
export type AgentSlots = Pick<Queue, 'take'>

/** What the subagents of one agent share. They work until the signal is aborted. */
export type WorkOf = {
  readonly signal: AbortSignal
  readonly slots: AgentSlots
  /** The slot of the agent, which it lends; those in the background have none above them. */
  readonly own?: WorkingSlot
  /** The waits of all that work for the same run, or for the same subagent in the background. */
  readonly waiting: DecisionWaits
}

/** How many subagents of one conversation work at the same time: those of its runs, and apart from them those in the background. */
export class SubagentSlots {
  readonly #ofRuns: Queue
  readonly #inBackground: Queue
  readonly #ofServer: AgentSlots

  constructor(settings: Settings, ofServer: AgentSlots) {
    const limit = limitsOf(settings).maxConcurrent
    this.#ofRuns = new Queue({ limit })
    this.#inBackground = new Queue({ limit })
    this.#ofServer = ofServer
  }

  /** The settings have changed. Subagents that work continue, also above a lower limit. */
  update(settings: Settings): void {
    const { maxConcurrent } = limitsOf(settings)
    this.#ofRuns.limit = maxConcurrent
    this.#inBackground.limit = maxConcurrent
  }

  /** Returns the slots for a run of the main agent, which has a slot of the server. */
  ofRun(): AgentSlots {
    return bothOf(this.#ofRuns, lendSlot(this.#ofServer))
  }

  /** A run would wait for those in the background, which wait for its slot: they take others. */
  inBackground(): AgentSlots {
    return bothOf(this.#inBackground, this.#ofServer)
  }
}

/**
 * Returns the slots for the subagents of an agent that has a slot of these: one of them gets that slot, and the others
 * take further ones.
 */
export function lendSlot(slots: AgentSlots): AgentSlots {
  const own = new Queue({ limit: 1 })
  return {
    take(turn) {
      const first = own.take(turn)
      if (first.isFree) return first
      const further = slots.take(turn)
      if (!further.isFree) return firstOf(first, further)
      first.leave()
      return further
    },
  }
}

/** A slot of each, as one. The second is requested when the first is given. */
function bothOf(ones: AgentSlots, others: AgentSlots): AgentSlots {
  return {
    take(turn) {
      const one = ones.take(turn)
      let other = one.isFree ? others.take(turn) : undefined
      let isLeft = false
      const both = async () => {
        if (!(await one.entry) || isLeft) return false
        other ??= others.take(turn)
        return await other.entry
      }
      const leave = () => {
        isLeft = true
        other?.leave()
        one.leave()
      }
      return { isFree: other?.isFree === true, entry: both(), leave }
    },
  }
}

/** The slot that is given first; the other request is left. */
function firstOf(a: SlotRequest, b: SlotRequest): SlotRequest {
  let isTaken = false
  const givenTo = async (request: SlotRequest, other: SlotRequest) => {
    const isGiven = await request.entry
    // Both may be given at the same time.
    if (isGiven && isTaken) request.leave()
    else if (isGiven) other.leave()
    isTaken ||= isGiven
    return isGiven
  }
  const both = [givenTo(a, b), givenTo(b, a)]
  const entry = Promise.all(both).then((each) => each.some(Boolean))
  const leave = () => {
    a.leave()
    b.leave()
  }
  return { isFree: false, entry, leave }
}
