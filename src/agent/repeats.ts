/** Notices an agent that is stuck: a pure fold over events that counts how often the same failing calls came in a row. */
import { createHash } from 'node:crypto'
import type { Event, EventOf } from '../contract/events/event.ts'
import type { ToolCall } from './tool-calls.ts'

/** Repetitions after which the model is told to do something else, and those after which the run ends. */
export const ADVICE_AT = 4
export const STUCK_AT = 6

/** The same calls with other results may be waiting for something, but not for ever: so many count as one repetition. */
export const OTHER_RESULTS_PER_REPEAT = 2

/** Answers in one repetition: the same answer again, or two that alternate. */
const PERIODS = [1, 2]
const KEPT_ANSWERS = STUCK_AT * OTHER_RESULTS_PER_REPEAT * Math.max(...PERIODS)

/** Characters of a hash. Short, as every conversation keeps a few of them. */
const HASH_LENGTH = 16

export type Repeats = {
  /** The latest answers in a row whose calls all failed, oldest first: a hash of the calls, then one of their results. */
  readonly failures: readonly string[]
  /** The same of the calls of the open turn that have failed so far; undefined once one of them has not. */
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

/** How often the latest failing answer, or the latest two in turn, came in a row; less often where results differ. */
export function countRepeats(repeats: Repeats): number {
  const { same, alike } = countTimes(repeats)
  return Math.max(same, Math.floor(alike / OTHER_RESULTS_PER_REPEAT))
}

/** `same`: with the same results; `alike`: whatever the results. */
function countTimes({ failures }: Repeats): { readonly same: number; readonly alike: number } {
  return { same: timesInRow(failures), alike: timesInRow(failures.map(callsIn)) }
}

/** What the model is told with the result that makes its turn a repetition too many. */
export function adviceFor(repeats: Repeats, result: Result, openCalls: readonly ToolCall[]): string | undefined {
  const after = withResult(repeats, result, openCalls)
  const times = countRepeats(after)
  if (after.failures === repeats.failures || times < ADVICE_AT || times >= STUCK_AT) return undefined
  const { same, alike } = countTimes(after)
  const [count, results, limit] =
    same === times ? [same, ', with the same results', STUCK_AT] : [alike, '', STUCK_AT * OTHER_RESULTS_PER_REPEAT]
  return `You have made the same failing calls ${count} times in a row${results}. Do something else: check what you assume, try another way, or tell the user what you need. After ${limit} times the run ends.`
}

function withResult(repeats: Repeats, result: Result, openCalls: readonly ToolCall[]): Repeats {
  const call = openCalls.find(({ toolUseId }) => toolUseId === result.tool_use_id)
  if (!call || result.parent_tool_use_id) return repeats
  if (!repeats.open || !hasFailed(result)) return NO_REPEATS
  const open = [...repeats.open, hashOf(call, result)]
  if (openCalls.length > 1) return { failures: repeats.failures, open }
  const answer = hash(open.map(callsIn)) + hash(open)
  return { failures: [...repeats.failures, answer].slice(-KEPT_ANSWERS), open: [] }
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
  return hash([name, input]) + hash([output, error_type, error_message])
}

const callsIn = (failure: string) => failure.slice(0, HASH_LENGTH)

/** Of what was stored as JSON, so it can be written as JSON again. */
function hash(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, HASH_LENGTH)
}

function timesInRow(failures: readonly string[]): number {
  return Math.max(...PERIODS.map((period) => Math.floor(answersInPattern(failures, period) / period)))
}

function answersInPattern(failures: readonly string[], period: number): number {
  let length = Math.min(period, failures.length)
  while (length < failures.length && failures.at(-1 - length) === failures.at(-1 - length + period)) length++
  return length
}
