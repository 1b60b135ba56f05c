/** Hands the open conversations of an instance that stops over to the others: each between two steps of its agents. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '../../telemetry/logger.ts'
import type { Conversation } from '../conversation.ts'
import type { PendingRequests } from './pending-requests.ts'
import { CREATED } from './pending-requests.ts'
import type { ConversationPhase, Phases } from './phases.ts'

export type HandOverDeps = {
  readonly phases: Phases
  readonly requests: PendingRequests
  /** Closes it, and stores that another instance may open it. */
  readonly rest: (conversation: Conversation) => Promise<void>
  readonly logger: Logger
}

/** A step takes seconds; this is for one that ends soon. */
const LOOK_MS = 50

/**
 * Hands over all conversations, also those that requests create meanwhile. Resolves when nothing is left and no request
 * waits for its response. When the deadline is aborted, it waits for neither: the calls that still run are interrupted.
 * Never rejects.
 */
export async function handOverAll(deps: HandOverDeps, deadline: AbortSignal): Promise<void> {
  const { phases, requests } = deps
  const seenPhases = new Set<ConversationPhase>()
  const unfinishedPhases = new Set<ConversationPhase>()
  const begin = async (id: string, phase: ConversationPhase, names: readonly string[]) => {
    seenPhases.add(phase)
    unfinishedPhases.add(phase)
    if ('ended' in phase) await Promise.allSettled([phase.ended])
    else await handOver(deps, id, phase.conversation, { names, deadline })
    unfinishedPhases.delete(phase)
  }
  for (const [id, phase] of await phases.settled()) void begin(id, phase, [id])
  do {
    await sleep(LOOK_MS)
    // Nobody else can open what a request creates here before its response.
    for (const [id, phase] of phases.current()) if (!seenPhases.has(phase)) void begin(id, phase, [id, CREATED])
  } while (unfinishedPhases.size > 0 || (requests.areAny && !deadline.aborted))
}

type Wait = { readonly names: readonly string[]; readonly deadline: AbortSignal }

/** Hands over one conversation. Never rejects. */
async function handOver(
  { phases, requests, rest, logger }: HandOverDeps,
  id: string,
  opening: Promise<Conversation>,
  { names, deadline }: Wait,
): Promise<void> {
  try {
    const conversation = await opening
    const isInUse = () => !conversation.canLeave || names.some((name) => requests.has(name))
    while (isInUse() && !deadline.aborted) await sleep(LOOK_MS, undefined, { signal: deadline }).catch(() => {}) // look again
    // A request may have deleted it meanwhile.
    const phase = phases.openOf(id)
    if (phase) await phases.close(id, phase, () => rest(conversation))
  } catch (error) {
    logger.error({ err: error, conversation_id: id }, 'a conversation could not be handed over')
  }
}
