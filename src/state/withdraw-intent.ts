/** Decides whether a client can take a message back: only before the agent has read it. Pure. */
import type { EventDraft, EventOf } from '../contract/events/event.ts'
import { Problem } from '../contract/problem.ts'
import { result, toStatus } from './drafts.ts'
import type { State } from './state-shape.ts'

/**
 * `sentThrough`: a request of the active run has what is stored up to this event; 0 if it has made none. `runRequestedAt`:
 * seq of the newest other message that asks for a run and waits, or 0.
 */
export type WithdrawIntent = {
  kind: 'withdraw'
  message: Pick<EventOf<'UserMessage'>, 'seq'>
  sentThrough: number
  runRequestedAt: number
  now: number
}

type Withdrawal = Pick<WithdrawIntent, 'message' | 'sentThrough' | 'runRequestedAt'>

export function decideWithdraw(state: State, intent: WithdrawIntent): EventDraft[] | Problem {
  const { message, runRequestedAt, now } = intent
  if (isRead(state, intent)) return alreadyRead(message.seq)
  const withdrawn: EventDraft = {
    type: 'MessageWithdrawn',
    source: 'user',
    message_seq: message.seq,
    ...(runRequestedAt > 0 && { run_requested_at: runRequestedAt }),
  }
  if (!leavesRunWithoutWork(state, intent)) return [withdrawn]
  return [withdrawn, result(state, 'cancelled', now), toStatus(state, 'idle', 'message_withdrawn')]
}

/** A summary may contain what was stored before it. An answer that was lost in a crash has read nothing. */
const isRead = ({ readThrough, forgotten }: State, { message, sentThrough }: Withdrawal): boolean =>
  message.seq <= Math.max(readThrough, sentThrough, forgotten?.seq ?? 0)

/** True if the run began for the message, has not asked the model yet, and has nothing else to read or to run. */
export function leavesRunWithoutWork(state: State, { message, sentThrough, runRequestedAt }: Withdrawal): boolean {
  const { status, run, openCalls, subagentEndedAt, readThrough, runRequestedAt: newest } = state
  if (isRead(state, { message, sentThrough, runRequestedAt }) || status !== 'running' || !run) return false
  if (run.startSeq < message.seq || run.steps > 0 || sentThrough > 0) return false
  return newest === message.seq && runRequestedAt === 0 && subagentEndedAt <= readThrough && openCalls.length === 0
}

const alreadyRead = (seq: number) =>
  new Problem(
    'already_read',
    'The agent has read this message, or a model request that is being answered has it. Send another message, or pause the agent with interrupt: true.',
    { details: { seq } },
  )
