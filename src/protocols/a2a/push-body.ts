/** The body of a push notification: the task as it was after an event. */
import { Problem } from '../../contract/problem.ts'
import type { EventLog } from '../../events/event-log.ts'
import type { DeliveryForm } from '../../webhooks/callback-record.ts'
import { readTurn } from '../items/follow-turn.ts'
import { TaskProjection } from './task-projection.ts'

/** Returns undefined while the agent works, if the event changes no state of the task, and after the end of the task. */
export async function pushBody(
  log: EventLog,
  { start, context: contextId }: Pick<DeliveryForm, 'start' | 'context'>,
  seq: number,
): Promise<string | undefined> {
  const projection = new TaskProjection({ conversationId: log.conversationId, start }, { contextId })
  let isRequest = false
  let isEnd = false
  try {
    for await (const step of readTurn(log, start, 'all')) {
      if ((step.seq ?? 0) > seq) break
      isRequest ||= step.seq === seq && step.change?.type === 'asked'
      isEnd ||= step.seq === seq && step.change?.type === 'ended'
      projection.add(step)
    }
  } catch (error) {
    // The message was taken back.
    if (error instanceof Problem) return undefined
    throw error
  }
  const { isAtRest, hasEnded, endSeq = seq } = projection
  // Before the end, the status event after a request is notified. After the end a subagent can ask, and no status event follows.
  const isNews = hasEnded ? isRequest || isEnd : !isRequest
  return isNews && isAtRest && endSeq === seq ? JSON.stringify({ task: projection.task() }) : undefined
}
