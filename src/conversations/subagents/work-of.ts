/** Where the subagents of one agent work. */
import type { Queue } from '../../lib/queue.ts'
import type { DecisionWaits } from './decision-waits.ts'

type Places = Pick<Queue, 'take'>

/** Until the signal is aborted, in these places. */
export type WorkOf = {
  readonly signal: AbortSignal
  readonly slots: Places
  readonly places?: Places
  /** Those that work for the same run, or for the same subagent in the background. */
  readonly waiting: DecisionWaits
}
