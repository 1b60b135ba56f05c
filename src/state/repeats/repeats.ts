/**
 * What an agent repeats: a pure fold over its events. It counts repeated answers, answers whose calls all fail, and
 * answers without a call; `habits.ts` decides how often is too often.
 */
import type { Event, EventOf } from '../../contract/events/event.ts'
import type { ToolCall } from '../tool-call.ts'
import { hashOfAnswer, hashOfResult, printOf } from './fingerprints.ts'

/** The number of answers that make the same few calls, after which their results are compared. */
export const COMPARED_AFTER = 10

/** Calls that take this long together wait for something: what they find may stay the same. In milliseconds. */
export const WAIT_MS = 1000

export type Repeats = {
  /** The calls of all answers, by their prints. */
  readonly calls?: Streak | undefined
  /** The calls of all answers with their results, since `COMPARED_AFTER`. */
  readonly unchanged?: Streak | undefined
  /** The latest consecutive answers whose calls all failed. */
  readonly failures?: Failures | undefined
  /** Consecutive answers without a call. */
  readonly texts?: number | undefined
  /** The calls of the open turn that have a result. */
  readonly turn?: Turn | undefined
}

export type Failures = {
  readonly times: number
  /** The calls of the last one with their results. */
  readonly last: string
  /** How many of the latest ones had the same calls and results. */
  readonly same: number
}

type Turn = {
  /** The sum of the prints: the order of the calls does not count. */
  readonly print: number
  readonly ms: number
  /** Hashes of the calls with their results, if all failed or results are compared. */
  readonly results: readonly string[]
  /** False as soon as a call has not failed. */
  readonly failed: boolean
}

export const NO_REPEATS: Repeats = {}

export type Result = Pick<
  EventOf<'ToolResult'>,
  'tool_use_id' | 'output' | 'is_error' | 'error_type' | 'error_message' | 'truncated' | 'duration_ms'
>

/** `openCalls` are the calls without a result before the event. */
export function repeatsAfter(repeats: Repeats, event: Event, openCalls: readonly ToolCall[]): Repeats {
  switch (event.type) {
    case 'UserMessage':
      return NO_REPEATS // the model has new input
    case 'AssistantMessage':
      if (event.tool_use_ids.length > 0) return { ...repeats, turn: NEW_TURN, texts: undefined }
      return { texts: (repeats.texts ?? 0) + 1 }
    case 'RequestAnswered':
      // Somebody looks at what the agent does.
      return isDenial(event) ? withoutFailures(repeats) : repeats
    case 'ToolResult':
      return repeatsAfterResult(repeats, event, openCalls)
    default:
      return repeats
  }
}

const isDenial = (event: EventOf<'RequestAnswered'>) =>
  event.kind === 'permission' &&
  event.answered_by === 'user' &&
  event.answer.decisions.some(({ behavior }) => behavior === 'deny')

const NEW_TURN: Turn = { print: 0, ms: 0, results: [], failed: true }

const withoutFailures = ({ turn, ...repeats }: Repeats): Repeats => ({
  ...repeats,
  failures: undefined,
  turn: turn && { ...turn, failed: false },
})

export function repeatsAfterResult(repeats: Repeats, result: Result, openCalls: readonly ToolCall[]): Repeats {
  const call = openCalls.find(({ toolUseId }) => toolUseId === result.tool_use_id)
  if (!call) return repeats
  const turn = repeats.turn && turnAfter(repeats, repeats.turn, call, result)
  if (!turn) return NO_REPEATS
  return openCalls.length > 1 ? { ...repeats, turn } : repeatsAfterTurn(repeats, turn)
}

function turnAfter(repeats: Repeats, turn: Turn, call: ToolCall, result: Result): Turn {
  const hasFailedCall = turn.failed && hasFailed(result)
  const isCompared = hasFailedCall || areCompared(repeats)
  return {
    print: (turn.print + printOf(call)) | 0,
    ms: turn.ms + result.duration_ms,
    results: isCompared ? [...turn.results, hashOfResult(call, result)] : turn.results,
    failed: hasFailedCall,
  }
}

/** Decides before the answer: what is compared is compared for all of its calls. */
const areCompared = ({ calls }: Repeats): boolean => calls !== undefined && calls.times >= COMPARED_AFTER

function repeatsAfterTurn(repeats: Repeats, { print, ms, results, failed }: Turn): Repeats {
  const isWait = ms >= WAIT_MS
  return {
    calls: isWait ? undefined : streakAfter(repeats.calls, print.toString(36)),
    unchanged: isWait || !areCompared(repeats) ? undefined : streakAfter(repeats.unchanged, hashOfAnswer(results)),
    failures: failed ? failuresAfter(repeats.failures, hashOfAnswer(results)) : undefined,
  }
}

function failuresAfter({ times, last, same }: Failures = NO_FAILURES, answer: string): Failures {
  return { times: times + 1, last: answer, same: answer === last ? same + 1 : 1 }
}

const NO_FAILURES: Failures = { times: 0, last: '', same: 0 }

/** Error types that say nothing about the call itself. What rules deny has failed: they will deny it again. */
const STOPPED = new Set<EventOf<'ToolResult'>['error_type']>(['interrupted', 'rejected'])

/** Includes a command with a non-zero exit code, which is not an error of its tool. */
export function hasFailed({
  is_error,
  error_type,
  output,
}: Pick<Result, 'output' | 'is_error' | 'error_type'>): boolean {
  if (is_error) return !STOPPED.has(error_type)
  const { exit_code } = fieldsOf(output)
  return typeof exit_code === 'number' && exit_code !== 0
}

type CommandFields = { readonly exit_code?: unknown }

function fieldsOf(output: unknown): CommandFields {
  return typeof output === 'object' && output !== null ? output : {}
}

/** Answers that may take turns. */
const MAX_DIFFERENT = 5

/** Answers in a row, each of which repeats one of the few before it. Something new begins another one. */
export type Streak = {
  /** The latest different answers, the newest first: at most `MAX_DIFFERENT`. */
  readonly recent: readonly string[]
  readonly times: number
}

const NO_STREAK: Streak = { recent: [], times: 0 }

export function streakAfter({ recent, times }: Streak = NO_STREAK, answer: string): Streak {
  return { recent: withNewest(recent, answer), times: recent.includes(answer) ? times + 1 : 1 }
}

const withNewest = (recent: readonly string[], answer: string): readonly string[] =>
  recent[0] === answer ? recent : [answer, ...recent.filter((each) => each !== answer)].slice(0, MAX_DIFFERENT)
