/**
 * Detects an agent that is stuck: a pure fold over events that counts how often the same failing calls were repeated.
 */
import { createHash } from 'node:crypto'
import type { Event, EventOf } from '../contract/events/event.ts'
import type { ToolCall } from './tool-calls.ts'

/** Repetitions after which the model is advised to do something else, and after which the run ends. */
export const ADVICE_AT = 4
export const STUCK_AT = 6

/**
 * The same calls with different results may be polling for something, but not forever: this many count as one
 * repetition.
 */
export const OTHER_RESULTS_PER_REPEAT = 2

/** Answers per repetition: the same answer again, or two that alternate. */
const PERIODS = [1, 2]
const KEPT_ANSWERS = STUCK_AT * OTHER_RESULTS_PER_REPEAT * Math.max(...PERIODS)

/** Characters of a hash. Short, because every conversation keeps a few of them. */
const HASH_LENGTH = 16

export type Repeats = {
  /**
   * The latest consecutive answers whose calls all failed, oldest first: a hash of the calls, then one of their
   * results.
   */
  readonly failures: readonly string[]
  /** The same for the calls of the open turn that have failed so far; undefined as soon as one has not. */
  readonly open?: readonly string[] | undefined
}

export const NO_REPEATS: Repeats = { failures: [] }

type Result = Pick<
  EventOf<'ToolResult'>,
  'tool_use_id' | 'output' | 'is_error' | 'error_type' | 'error_message' | 'parent_tool_use_id'
>

/** `openCalls` are the calls without a result before the event. */
export function repeatsAfter(repeats: Repeats, event: Event, openCalls: readonly ToolCall[]): Repeats {
  switch (event.type) {
    case 'UserMessage':
      return NO_REPEATS // the model has new input
    case 'AssistantMessage':
      if (event.parent_tool_use_id) return repeats
      return event.tool_use_ids.length ? { failures: repeats.failures, open: [] } : NO_REPEATS
    case 'ToolResult':
      return withResult(repeats, event, openCalls)
    default:
      return repeats
  }
}

/**
 * Returns how often the latest failing answer, or the latest two in turn, were repeated; fewer if the results differ.
 */
export function countRepeats(repeats: Repeats): number {
  const { same, alike } = countTimes(repeats)
  return Math.max(same, Math.floor(alike / OTHER_RESULTS_PER_REPEAT))
}

/** `same`: with equal results; `alike`: with any results. */
function countTimes({ failures }: Repeats): { readonly same: number; readonly alike: number } {
  return { same: timesInRow(failures), alike: timesInRow(failures.map(callsIn)) }
}

/** Returns the advice for the model with the result that completes one repetition too many. */
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

/** Error types that say nothing about the call itself, because it was decided not to run it. */
const DECIDED = new Set<EventOf<'ToolResult'>['error_type']>(['interrupted', 'rejected', 'denied'])

/** Includes a command with a non-zero exit code, which is not an error of its tool. */
function hasFailed({ is_error, error_type, output }: Result): boolean {
  if (is_error) return !DECIDED.has(error_type)
  const { exit_code } = typeof output === 'object' && output !== null ? (output as { exit_code?: unknown }) : {}
  return typeof exit_code === 'number' && exit_code !== 0
}

function hashOf({ name, input }: ToolCall, { output, error_type, error_message }: Result): string {
  return hash([name, input]) + hash([output, error_type, error_message])
}

const callsIn = (failure: string) => failure.slice(0, HASH_LENGTH)

/** Hashes values that were stored as JSON, and can be serialised again. */
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
