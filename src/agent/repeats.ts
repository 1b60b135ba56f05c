/**
 * Detects an agent that is stuck: a pure fold over events that counts how often the same failing calls were repeated,
 * how often other calls failed with the same error, and how often the agent answered without calling a tool.
 */
import { createHash } from 'node:crypto'
import type { Event, EventOf } from '../contract/events/event.ts'
import { errorTextOf, hasFailed } from './failed-result.ts'
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
  /** The error that all failures of the latest answers have in common, and the number of these answers. */
  readonly error?: { readonly hash: string; readonly times: number } | undefined
  /** Consecutive answers without a call. */
  readonly texts?: number | undefined
}

export const NO_REPEATS: Repeats = { failures: [] }

type Result = Pick<EventOf<'ToolResult'>, 'tool_use_id' | 'output' | 'is_error' | 'error_type' | 'error_message'>

/** `openCalls` are the calls without a result before the event. */
export function repeatsAfter(repeats: Repeats, event: Event, openCalls: readonly ToolCall[]): Repeats {
  switch (event.type) {
    case 'UserMessage':
      return NO_REPEATS // the model has new input
    case 'AssistantMessage':
      if (event.tool_use_ids.length) return { failures: repeats.failures, open: [], error: repeats.error }
      // The provider paused an answer, and continues it with the next request.
      if (event.stop_reason === 'pause_turn') return { ...NO_REPEATS, texts: repeats.texts }
      return { ...NO_REPEATS, texts: (repeats.texts ?? 0) + 1 }
    case 'ToolResult':
      return withResult(repeats, event, openCalls)
    default:
      return repeats
  }
}

/** What an agent repeats. */
export type Habit = 'calls' | 'error' | 'texts'

type Habits = Readonly<Record<Habit, number>>

/** Returns how often each was repeated. Calls with other results, and an error of other calls, count half. */
export function countRepeats(repeats: Repeats): Habits {
  const { same, alike } = countTimes(repeats)
  return {
    calls: Math.max(same, Math.floor(alike / OTHER_RESULTS_PER_REPEAT)),
    error: Math.floor((repeats.error?.times ?? 0) / OTHER_RESULTS_PER_REPEAT),
    texts: repeats.texts ?? 0,
  }
}

/** Returns what the agent repeats so often that its run ends. */
export function stuckIn(repeats: Repeats): Habit | undefined {
  const counts = countRepeats(repeats)
  return HABITS.find((habit) => counts[habit] >= STUCK_AT)
}

const HABITS: readonly Habit[] = ['calls', 'error', 'texts']

/** `same`: with equal results; `alike`: with any results. */
function countTimes({ failures }: Repeats): { readonly same: number; readonly alike: number } {
  return { same: timesInRow(failures), alike: timesInRow(failures.map(callsIn)) }
}

/** Returns the advice for the model with the result that completes one repetition too many. */
export function adviceFor(repeats: Repeats, result: Result, openCalls: readonly ToolCall[]): string | undefined {
  const after = withResult(repeats, result, openCalls)
  const counts = countRepeats(after)
  const isTooOften = (habit: Habit) => counts[habit] >= ADVICE_AT && counts[habit] < STUCK_AT
  if (after.failures === repeats.failures || stuckIn(after)) return undefined
  if (isTooOften('calls')) return adviceOnCalls(after, counts.calls)
  if (!isTooOften('error')) return undefined
  return `Your last ${after.error?.times} answers failed with the same error, whatever you called. ${OTHER_WAY} After ${STUCK_AT * OTHER_RESULTS_PER_REPEAT} such answers the run ends.`
}

/** Returns the advice for a model that continues without calling a tool. */
export function adviceOnTexts({ texts = 0 }: Repeats): string | undefined {
  if (texts < ADVICE_AT || texts >= STUCK_AT) return undefined
  return `You have answered ${texts} times in a row without calling a tool. Call the tools that do what is missing, or tell the user what you need. After ${STUCK_AT} times the run ends.`
}

function adviceOnCalls(after: Repeats, times: number): string {
  const { same, alike } = countTimes(after)
  const [count, results, limit] =
    same === times ? [same, ', with the same results', STUCK_AT] : [alike, '', STUCK_AT * OTHER_RESULTS_PER_REPEAT]
  return `You have made the same failing calls ${count} times in a row${results}. ${OTHER_WAY} After ${limit} times the run ends.`
}

const OTHER_WAY = 'Do something else: check what you assume, try another way, or tell the user what you need.'

function withResult(repeats: Repeats, result: Result, openCalls: readonly ToolCall[]): Repeats {
  const call = openCalls.find(({ toolUseId }) => toolUseId === result.tool_use_id)
  if (!call) return repeats
  if (!repeats.open || !hasFailed(result)) return NO_REPEATS
  const open = [...repeats.open, hashOf(call, result)]
  const error = errorAfter(repeats, result)
  if (openCalls.length > 1) return { failures: repeats.failures, open, error }
  const answer = hash(open.map(callsIn)) + hash(open)
  return {
    failures: [...repeats.failures, answer].slice(-KEPT_ANSWERS),
    open: [],
    error: error && { ...error, times: error.times + 1 },
  }
}

/** Each failure of an answer has to have the same error; `times` counts whole answers. */
function errorAfter({ error, open = [] }: Repeats, result: Result): Repeats['error'] {
  const text = errorTextOf(result)
  if (text === '') return undefined
  const found = hash(text)
  if (error?.hash === found) return error
  return open.length > 0 ? undefined : { hash: found, times: 0 }
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
