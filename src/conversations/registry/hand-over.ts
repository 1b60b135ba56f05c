/** Hands the open conversations of an instance that stops over to the others: each between two steps of its agents. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '../../telemetry/logger.ts'
import type { Conversation } from '../conversation.ts'
import type { Phases } from './phases.ts'

export type HandOverDeps = {
  readonly phases: Phases
  /** Closes it, and stores that another instance may open it. */
  readonly rest: (conversation: Conversation) => Promise<void>
  readonly logger: Logger
}

/** A step takes seconds; this is for one that ends soon. */
const LOOK_MS = 50

/** When the deadline is aborted, the calls that still run are interrupted. Never rejects. */
export async function handOverAll({ phases, rest, logger }: HandOverDeps, deadline: AbortSignal): Promise<void> {
  const handOver = async (id: string, opening: Promise<Conversation>) => {
    try {
      const conversation = await opening
      while (!conversation.canLeave && !deadline.aborted)
        await sleep(LOOK_MS, undefined, { signal: deadline }).catch(() => {}) // look again
      // A request may have deleted it meanwhile.
      const phase = phases.openOf(id)
      if (phase) await phases.close(id, phase, () => rest(conversation))
    } catch (error) {
      logger.error({ err: error, conversation_id: id }, 'a conversation could not be handed over')
    }
  }
  const current = await phases.settled()
  await Promise.allSettled(
    current.map(([id, phase]) => ('ended' in phase ? phase.ended : handOver(id, phase.conversation))),
  )
}
