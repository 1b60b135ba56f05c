/** Reads a turn from the log of its conversation: as far as it is stored, or on, live, until it ends or rests. */
import type { Event } from '../../contract/events/event.ts'
import type { TransientEvent } from '../../contract/events/transient-event.ts'
import { Problem } from '../../contract/problem.ts'
import { closedProblem } from '../../events/closed-problem.ts'
import { follow } from '../../events/event-feed.ts'
import type { EventLog } from '../../events/event-log.ts'
import { findInLog, readPages } from '../../events/read-pages.ts'
import type { TurnChange } from './turn-changes.ts'
import { TurnChanges } from './turn-changes.ts'

/** `change` and `event` undefined: nothing has happened for a while. `isOfBefore`: it was before the first event of the turn. */
export type TurnStep = {
  /** The seq of the event; undefined for a piece of text. */
  readonly seq: number | undefined
  readonly change: TurnChange | undefined
  readonly event: Event | TransientEvent | undefined
  readonly isOfBefore: boolean
}

const PAGE = 256
/** The time without a step that is shown after which a reader learns that nothing has ended, in milliseconds. */
const IDLE_MS = 15_000
const IDLE: TurnStep = { seq: undefined, change: undefined, event: undefined, isOfBefore: false }

export type TurnLog = Pick<EventLog, 'head' | 'read'>

/** `all`: the turn continues past its ends and rests, and its reader says where it is over. Otherwise the seq up to which it has rested. */
export type Through = number | 'all'

/** Yields what is stored now, from the first event of the turn on; ends as `followTurn` does, or where the log ends. */
export async function* readTurn(
  log: TurnLog,
  start: number,
  restedThrough: Through = 0,
): AsyncGenerator<TurnStep, void, void> {
  const changes = new TurnChanges()
  for await (const { events } of readPages(log, { afterSeq: await beginning(log, start), limit: PAGE }))
    for (const { seq, event } of events) {
      const steps = stepsOf(changes, { event, seq }, start)
      yield* steps
      if (steps.some((step) => isLast(step, restedThrough))) return
    }
}

/**
 * Yields the same, with pieces of text, until the turn has ended or rests. Throws if the log is closed or deleted before that,
 * or the reader lags. The signal ends it without an error. It continues where the turn rested up to `restedThrough`.
 */
export async function* followTurn(
  log: EventLog,
  start: number,
  signal: AbortSignal,
  restedThrough: Through = 0,
): AsyncGenerator<TurnStep, void, void> {
  const changes = new TurnChanges()
  let shownAt = performance.now()
  for await (const batch of follow(log, { afterSeq: await beginning(log, start), deltas: true, signal })) {
    for (const { event, seq } of batch.records) {
      if (!('conversation_id' in event) || event.type === 'conversation_deleted') continue
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- this reader has no requests of hooks
      const steps = stepsOf(changes, { event: event as Event | TransientEvent, seq }, start)
      yield* steps
      if (steps.some(({ change }) => change)) shownAt = performance.now()
      if (steps.some((step) => isLast(step, restedThrough))) return
    }
    // What a subagent says, for example, is not shown.
    if (!batch.end && (batch.records.length === 0 || performance.now() - shownAt >= IDLE_MS)) {
      yield IDLE
      shownAt = performance.now()
    }
    if (batch.end === 'aborted') return
    if (batch.end === 'lagged') throw new Problem('unavailable', 'The reader was too slow. Read the turn again.')
    if (batch.end) throw closedProblem(batch.end)
  }
}

const isLast = ({ change, isOfBefore, seq = Infinity }: TurnStep, restedThrough: Through): boolean =>
  restedThrough !== 'all' &&
  !isOfBefore &&
  (change?.type === 'ended' || (change?.type === 'rests' && seq > restedThrough))

export type ReadEvent = { readonly event: Event | TransientEvent; readonly seq: number | undefined }

/**
 * Answers and failed attempts are steps without a change, too: readers count what they have used. So is what a subagent does, who said what, and
 * the end of what waits, for readers that show it; and, after the end of the turn, the run that nobody has sent a message for.
 */
const EVENT_STEPS: ReadonlySet<string> = new Set([
  'AssistantMessage',
  'ModelRetry',
  'UserMessage',
  'SubagentStart',
  'RequestAnswered',
  'RequestClosed',
])
const OF_SUBAGENTS: ReadonlySet<string> = new Set(['ToolUse', 'ToolResult', 'Result'])

const isStep = (event: Event | TransientEvent): boolean =>
  EVENT_STEPS.has(event.type) ||
  (OF_SUBAGENTS.has(event.type) && 'parent_tool_use_id' in event && event.parent_tool_use_id !== undefined)

export function stepsOf(changes: TurnChanges, { event, seq }: ReadEvent, start: number): TurnStep[] {
  if (event.type === 'MessageWithdrawn' && event.message_seq === start)
    throw new Problem('message_not_found', 'The message of this turn was withdrawn before the agent read it.')
  const isOfBefore = seq !== undefined && seq < start
  const isAgain = changes.hasEnded && event.type === 'StatusUpdate' && event.status === 'running'
  const foundChanges = changes.add(event).map((change) => ({ seq, change, event: undefined, isOfBefore }))
  return isAgain || isStep(event) ? [{ seq, change: undefined, event, isOfBefore }, ...foundChanges] : foundChanges
}

const ANSWERS: ReadonlySet<string> = new Set(['AssistantMessage'])
const NEXT: ReadonlySet<string> = new Set(['AssistantMessage', 'RequestAnswered', 'Result'])

/**
 * A turn that begins with an answer to a request, or with a message that was sent with one, continues with the calls of the last
 * answer of the model.
 */
async function beginning(log: TurnLog, start: number): Promise<number> {
  if (await isWithoutCalls(log, start)) return start - 1
  const range = { beforeSeq: start, types: ANSWERS, order: 'desc', limit: PAGE } as const
  const answerSeq = await findInLog(log, range, ({ event, seq }) =>
    event.type === 'AssistantMessage' && event.parent_tool_use_id === undefined ? seq : undefined,
  )
  return (answerSeq ?? start) - 1
}

async function isWithoutCalls(log: TurnLog, start: number): Promise<boolean> {
  const { events } = await log.read({ afterSeq: start - 1, beforeSeq: start + 1, limit: 1 })
  const [first] = events
  if (first?.event.type !== 'UserMessage') return false
  if (first.event.run) return true
  // It was stored before the answers.
  for await (const page of readPages(log, { afterSeq: start, types: NEXT, limit: 1 }))
    for (const { type } of page.events) return type !== 'RequestAnswered'
  return true
}
