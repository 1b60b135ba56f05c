/** What the subagents of one agent share: their slots, and the signal that ends them. */
import type { Queue } from '../../lib/queue.ts'
import type { DecisionWaits } from './decision-waits.ts'

type Places = Pick<Queue, 'take'>

/** Subagents work until the signal is aborted, in these slots. */
export type WorkOf = {
  readonly signal: AbortSignal
  readonly slots: Places
  readonly places?: Places
  /** The waits of all that work for the same run, or for the same subagent in the background. */
  readonly waiting: DecisionWaits
}
