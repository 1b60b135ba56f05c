/** Starts the run that a client asks for together with a new conversation or a fork. */
import { Problem } from '../../contract/problem.ts'
import type { ProblemCode } from '../../contract/problem.ts'
import { readPages } from '../../events/read-pages.ts'
import type { EventLog } from '../../events/event-log.ts'

/** A run has begun, or waits. */
const BEGUN: ReadonlySet<ProblemCode> = new Set([
  'already_running',
  'already_continued',
  'waiting_for_confirmation',
  'waiting_for_input',
  'waiting_for_client',
])

type Runnable = { readonly log: EventLog; readonly run: (options: { after_seq: number }) => Promise<string> }

const STATUS = new Set(['StatusUpdate'])

/** Returns the id of the run, which is the first after this event. A repeated request finds the run that an earlier one has started. */
export async function startFirstRun(conversation: Runnable, afterSeq = 0): Promise<string> {
  try {
    return await conversation.run({ after_seq: afterSeq })
  } catch (error) {
    const isBegun = error instanceof Problem && BEGUN.has(error.code)
    const begunRun = isBegun ? await firstRunIn(conversation.log, afterSeq) : undefined
    if (begunRun === undefined) throw error
    return begunRun
  }
}

async function firstRunIn(log: EventLog, afterSeq: number): Promise<string | undefined> {
  for await (const { events } of readPages(log, { afterSeq, types: STATUS, limit: 1 }))
    for (const { event } of events)
      if (event.type === 'StatusUpdate' && event.status === 'running' && event.run_id !== undefined) return event.run_id
  return undefined
}
