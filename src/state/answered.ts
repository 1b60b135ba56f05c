/**
 * An answer that ends a run, until the run has ended with it, as a pure fold. A run that is cut off in between has nothing
 * left to ask the model.
 */
import { z } from 'zod'
import type { EventOf } from '../contract/events/event.ts'
import type { StopReason } from '../contract/events/status.ts'
import { cutReasonOf } from '../contract/finish-reason.ts'
import { PREVIEW_CHARS } from './preview.ts'

export const StoredAnswer = z.object({ stopReason: z.enum(['completed', 'finished']), text: z.string() })
export type StoredAnswer = z.infer<typeof StoredAnswer>

/** Undefined unless the agent has nothing more to do: it called no tool, and was not cut off. */
export function answeredBy(event: EventOf<'AssistantMessage'>): StoredAnswer | undefined {
  const { text, stop_reason, tool_use_ids, partial } = event
  if (partial || tool_use_ids.length > 0 || cutReasonOf(stop_reason) !== undefined) return undefined
  return stop_reason === 'pause_turn' && text !== '' ? undefined : { stopReason: 'completed', text }
}

/** Tools that end the run. */
export const TOOLS_THAT_FINISH: ReadonlySet<string> = new Set(['Finish'])

/** Returns the answer after the result of a call of this tool. */
export function answeredAfterResult(
  before: StoredAnswer | undefined,
  name: string | undefined,
  { is_error, output }: EventOf<'ToolResult'>,
): StoredAnswer | undefined {
  if (name === undefined || !TOOLS_THAT_FINISH.has(name) || is_error) return before
  return { stopReason: 'finished', text: typeof output === 'string' ? output : '' }
}

const CUT_OFF: ReadonlySet<StopReason> = new Set(['paused', 'server_restart', 'owner_lost'])

/** The end of a run uses the answer up, unless it was cut off. That of a run of the main agent is what lists show. */
export const afterEnd = (before: StoredAnswer | undefined, event: EventOf<'Result'>) => ({
  answered: CUT_OFF.has(event.stop_reason) ? before : undefined,
  ...(event.parent_tool_use_id === undefined && {
    lastWords: Buffer.from(event.final_text.slice(0, PREVIEW_CHARS)).toString(),
  }),
})

type Ending = {
  readonly answered: StoredAnswer | undefined
  readonly openCalls: readonly unknown[]
  readonly runRequestedAt: number
  readonly subagentEndedAt: number
  readonly readThrough: number
  readonly run: { readonly toolChoice?: unknown } | undefined
}

/** Undefined if the agent has something to read, or calls to make, before it can end with the answer. */
export function openAnswer(state: Ending): StoredAnswer | undefined {
  const { answered, openCalls, runRequestedAt, subagentEndedAt, readThrough, run } = state
  if (!answered || openCalls.length > 0 || run?.toolChoice) return undefined
  return Math.max(runRequestedAt, subagentEndedAt) > readThrough ? undefined : answered
}
