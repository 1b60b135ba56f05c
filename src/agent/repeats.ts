/** Notices an agent that is stuck: a pure fold over events that counts how often the same failing calls came in a row. */
import { createHash } from 'node:crypto'
import type { Event, EventOf } from '../contract/event.ts'
import type { ToolCall } from './tool-calls.ts'

/** Repetitions after which the model is told to do something else, and those after which the run ends. */
export const ADVICE_AT = 4
export const STUCK_AT = 6

/** Answers in one repetition: the same answer again, or two that alternate. */
const PERIODS = [1, 2]
const KEPT_ANSWERS = STUCK_AT * Math.max(...PERIODS)

export type Repeats = {
  /** The latest answers in a row whose calls all failed, oldest first: a hash of the calls and their results. */
  readonly failures: readonly string[]
  /** Hashes of the calls of the open turn that have failed so far; undefined once one of them has not. */
  readonly open?: readonly string[] | undefined
}

export const NO_REPEATS: Repeats = { failures: [] }

type Result = Pick<
  EventOf<'ToolResult'>,
  'tool_use_id' | 'output' | 'is_error' | 'error_type' | 'error_message' | 'parent_tool_use_id'
>

/** `openCalls` are the calls without a result, as they were before the event. */
export function repeatsAfter(repeats: Repeats, event: Event, openCalls: readonly ToolCall[]): Repeats {
  switch (event.type) {
    case 'UserMessage':
      return NO_REPEATS // the model has something new to go by
    case 'AssistantMessage':
      if (event.parent_tool_use_id) return repeats
      return event.tool_use_ids.length ? { failures: repeats.failures, open: [] } : NO_REPEATS
    case 'ToolResult':
      return withResult(repeats, event, openCalls)
    default:
      return repeats
  }
}

/** How often the latest failing answer, or the latest two in turn, came in a row with the same results. */
export function countRepeats({ failures }: Repeats): number {
  return Math.max(...PERIODS.map((period) => Math.floor(answersInPattern(failures, period) / period)))
}

/** What the model is told with the result that makes its turn a repetition too many. */
export function adviceFor(repeats: Repeats, result: Result, openCalls: readonly ToolCall[]): string | undefined {
  const after = withResult(repeats, result, openCalls)
  const times = countRepeats(after)
  if (after.failures === repeats.failures || times < ADVICE_AT || times >= STUCK_AT) return undefined
  return `You have made the same failing calls ${times} times in a row, with the same results. Do something else: check what you assume, try another way, or tell the user what you need. After ${STUCK_AT} times the run ends.`
}

function withResult(repeats: Repeats, result: Result, openCalls: readonly ToolCall[]): Repeats {
  const call = openCalls.find(({ toolUseId }) => toolUseId === result.tool_use_id)
  if (!call || result.parent_tool_use_id) return repeats
  if (!repeats.open || !hasFailed(result)) return NO_REPEATS
  const open = [...repeats.open, hashOf(call, result)]
  if (openCalls.length > 1) return { failures: repeats.failures, open }
  return { failures: [...repeats.failures, hash(open)].slice(-KEPT_ANSWERS), open: [] }
}

/** Results that say nothing about the call itself: somebody decided them. */
const DECIDED = new Set<EventOf<'ToolResult'>['error_type']>(['interrupted', 'rejected', 'denied'])

/** Also a command that exited with another code than 0, which is no error of its tool. */
function hasFailed({ is_error, error_type, output }: Result): boolean {
  if (is_error) return !DECIDED.has(error_type)
  const { exit_code } = typeof output === 'object' && output !== null ? (output as { exit_code?: unknown }) : {}
  return typeof exit_code === 'number' && exit_code !== 0
}

function hashOf({ name, input }: ToolCall, { output, error_type, error_message }: Result): string {
  return hash([name, input, output, error_type, error_message])
}

/** Of what was stored as JSON, so it can be written as JSON again. Short, as every conversation keeps a few of them. */
function hash(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 32)
}

function answersInPattern(failures: readonly string[], period: number): number {
  let length = Math.min(period, failures.length)
  while (length < failures.length && failures.at(-1 - length) === failures.at(-1 - length + period)) length++
  return length
}
