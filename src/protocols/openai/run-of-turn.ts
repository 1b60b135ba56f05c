/** Finds the options of the run that a turn is a part of, where the log has them: in the first event of the run. */
import type { Event, EventOf } from '../../contract/events/event.ts'
import { readPages } from '../../events/read-pages.ts'
import type { TurnLog } from '../items/follow-turn.ts'

export type RunOptionsInLog = Partial<
  Pick<
    EventOf<'StatusUpdate'>,
    'instructions' | 'temperature' | 'max_output_tokens' | 'reasoning_effort' | 'tool_choice' | 'output_schema'
  >
>

const PAGE = 64
const OF_RUNS: ReadonlySet<string> = new Set(['StatusUpdate', 'AssistantMessage', 'Result'])
const CHANGES: ReadonlySet<string> = new Set(['StatusUpdate'])

/** Empty if no run has begun. A turn that begins with an answer to a request continues a run, with its options. */
export async function optionsOfTurn(log: TurnLog, start: number): Promise<RunOptionsInLog> {
  const { runId, seq: foundAt } = (await runAfter(log, start)) ?? {}
  if (runId === undefined || foundAt === undefined) return {}
  let first: RunOptionsInLog = {}
  const range = { beforeSeq: foundAt + 1, types: CHANGES, limit: PAGE }
  for await (const { events } of readPages(log, { ...range, order: 'desc' }))
    for (const { event } of events) {
      if (event.type !== 'StatusUpdate' || event.run_id !== runId) return first
      first = event
    }
  return first
}

async function runAfter(log: TurnLog, start: number): Promise<{ runId: string; seq: number } | undefined> {
  for await (const { events } of readPages(log, { afterSeq: start - 1, types: OF_RUNS, limit: PAGE }))
    for (const { event, seq } of events) {
      const runId = runOfAgent(event)
      if (runId !== undefined) return { runId, seq }
    }
  return undefined
}

/** Undefined for a run of a subagent. */
const runOfAgent = (event: Event): string | undefined =>
  'run_id' in event && !('parent_tool_use_id' in event && event.parent_tool_use_id !== undefined)
    ? event.run_id
    : undefined
