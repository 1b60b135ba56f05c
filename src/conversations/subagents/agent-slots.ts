/**
 * The slots in which the subagents of one agent work. Each needs one of its conversation, whose settings limit its
 * subagents, and one of the server, which limits all runs. An agent lends its own to its subagents while it waits for
 * them: so they can always work, whatever the limits.
 */
import type { SlotRequest } from '../../lib/queue.ts'
import { Queue } from '../../lib/queue.ts'
import type { Settings } from '../../state/settings.ts'
import type { DecisionWaits } from './decision-waits.ts'
import { limitsOf } from './definitions.ts'

/** What the subagents of one agent share. They work until the signal is aborted. */
export type WorkOf = {
  readonly signal: AbortSignal
  readonly slots: AgentSlots
  /** The waits of all that work for the same run, or for the same subagent in the background. */
  readonly waiting: DecisionWaits
}

type Source = Pick<Queue, 'take'>

export class AgentSlots {
  readonly #ofConversation: Source
  readonly #ofServer: Source

  constructor(ofConversation: Source, ofServer: Source) {
    this.#ofConversation = ofConversation
    this.#ofServer = ofServer
  }

  /** Resolves to a function that gives the slots back; to undefined if the signal is aborted before both are free. */
  async take(signal: AbortSignal): Promise<(() => void) | undefined> {
    const own = this.#ofConversation.take({ signal })
    const further = (await own.given) ? this.#ofServer.take({ signal }) : undefined
    const leave = () => {
      further?.leave()
      own.leave()
    }
    if (await further?.given) return leave
    leave()
    return undefined
  }

  /** For the subagents of an agent that has taken slots of these. */
  lend(): AgentSlots {
    return new AgentSlots(new LentSlot(this.#ofConversation), new LentSlot(this.#ofServer))
  }
}

/** How many subagents of one conversation work at the same time: those of its runs, and apart from them those in the background. */
export class SubagentSlots {
  readonly #ofRuns: Queue
  readonly #inBackground: Queue
  readonly #ofServer: Queue

  constructor(settings: Settings, ofServer: Queue) {
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

  /** For a run of the main agent, which has a slot of the server. */
  ofRun(): AgentSlots {
    return new AgentSlots(this.#ofRuns, new LentSlot(this.#ofServer))
  }

  /** A run would wait for those in the background, which wait for its slot: they take others. */
  inBackground(): AgentSlots {
    return new AgentSlots(this.#inBackground, this.#ofServer)
  }
}

/** The slot of an agent that waits, for one of its subagents; the others take slots of the queue. */
class LentSlot implements Source {
  readonly #own = new Queue({ limit: 1 })
  readonly #queue: Source

  constructor(queue: Source) {
    this.#queue = queue
  }

  take({ signal }: { readonly signal: AbortSignal }): SlotRequest {
    const own = this.#own.take({ signal })
    if (own.isFree) return own
    const further = this.#queue.take({ signal })
    if (further.isFree) {
      own.leave()
      return further
    }
    return firstOf(own, further)
  }
}

/** The slot that is given first; the other request is left. */
function firstOf(a: SlotRequest, b: SlotRequest): SlotRequest {
  let isTaken = false
  const givenTo = async (request: SlotRequest, other: SlotRequest) => {
    const isGiven = await request.given
    // Both may be given at the same time.
    if (isGiven && isTaken) request.leave()
    else if (isGiven) other.leave()
    isTaken ||= isGiven
    return isGiven
  }
  const both = [givenTo(a, b), givenTo(b, a)]
  const given = Promise.all(both).then((each) => each.some(Boolean))
  const leave = () => {
    a.leave()
    b.leave()
  }
  return { isFree: false, given, leave }
}
