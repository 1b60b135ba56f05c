/**
 * Decides what a compaction does: whether shortening old tool results is enough, how much is forgotten otherwise, and
 * what is kept.
 */
import type { ListedMessage } from '../history/message-list.ts'
import { condenseMessages } from '../history/message-list.ts'
import { tokensOfMessage } from '../history/context-size.ts'

/** All parts are of the limit. */
const RECENT_PART = 0.3
/** Shortening alone is enough if it leaves at most this. Otherwise the next compaction would follow too soon. */
const ENOUGH_PART = 0.6
/** A compaction that is not asked for has to save at least this, so that a context that stays full is not compacted again and again. */
const WORTHWHILE_PART = 0.1
const KEPT_MESSAGES_PART = 0.25
const SUMMARY_PART = 0.15

/** Characters of an old tool result that stay. */
const RESULT_CHARS = 1000

/** The same for results of the latest turn, if that is too large by itself. */
const [MIN_RECENT_CHARS, MAX_RECENT_CHARS] = [400, 20_000]

const MIN_MESSAGE_CHARS = 400

/** The longest summary, in characters. */
const [MIN_SUMMARY_CHARS, MAX_SUMMARY_CHARS] = [1000, 24_000]

const CHARS_PER_TOKEN = 4

export type PlanInput = {
  readonly entries: readonly ListedMessage[]
  /** What earlier compactions have forgotten, by seq. */
  readonly forgottenThrough: number
  /** Tokens of a request now, and of its prompt and tools alone. */
  readonly tokens: number
  readonly fixedTokens: number
  /** Tokens that a request should have at most. */
  readonly limit: number
  /** Corrects an estimate. */
  readonly scaled: (tokens: number) => number
  /** Forgets what can be forgotten, even if shortening would be enough. */
  readonly forced: boolean
  /** Does not wait until enough can be saved. */
  readonly urgent: boolean
  /** The run that is active, or waits for the user. */
  readonly runId?: string | undefined
}

/** The fields of the `Condensation` that are decided before there is a summary. */
export type Plan = {
  readonly forgotten_through_seq: number
  readonly kept_message_seqs: number[]
  readonly max_message_chars?: number
  readonly shortened_through_seq: number
  readonly max_result_chars: number
}

/** Returns undefined if nothing can be saved, or too little. Pure. */
export function planCompaction(input: PlanInput): Plan | undefined {
  const { limit, forced, urgent } = input
  const through = lastOldSeq(input)
  const shortening: Plan = {
    forgotten_through_seq: 0,
    kept_message_seqs: [],
    shortened_through_seq: through,
    max_result_chars: RESULT_CHARS,
    ...latestTurnOf(input),
  }
  const isWorthwhile = (savedTokens: number) => savedTokens > (urgent || forced ? 0 : limit * WORTHWHILE_PART)
  const byShortening = savedBy(shortening, input)
  const isEnough = isWorthwhile(byShortening) && input.tokens - byShortening <= limit * ENOUGH_PART
  if (isEnough && !forced) return shortening
  const forgetting = { ...shortening, forgotten_through_seq: through, ...keptMessages(through, input) }
  const savedTokens = savedBy(forgetting, input)
  if (through > input.forgottenThrough && savedTokens > byShortening && isWorthwhile(savedTokens)) return forgetting
  return isWorthwhile(byShortening) ? shortening : undefined
}

/** Returns the estimated tokens of a request after the compaction. The length of the summary is not known yet. */
export function tokensAfter(
  plan: Plan,
  { entries, forgottenThrough, fixedTokens, scaled }: PlanInput,
  summary = '',
): number {
  const after = condenseMessages(entries, forgottenThrough, { ...plan, summary })
  return fixedTokens + after.reduce((sum, { message }) => sum + scaled(tokensOfMessage(message)), 0)
}

/** Returns the longest summary in characters. */
export function maxSummaryChars(limit: number): number {
  return clamp(limit * SUMMARY_PART * CHARS_PER_TOKEN, MIN_SUMMARY_CHARS, MAX_SUMMARY_CHARS)
}

function savedBy(plan: Plan, input: PlanInput): number {
  const before = input.fixedTokens + sizeOf(input.entries, input)
  const summary = plan.forgotten_through_seq > 0 ? input.limit * SUMMARY_PART : 0
  return before - tokensAfter(plan, input) - (input.urgent || input.forced ? 0 : summary)
}

const sizeOf = (entries: readonly ListedMessage[], { scaled }: PlanInput) =>
  entries.reduce((sum, { message }) => sum + scaled(tokensOfMessage(message)), 0)

/** Returns the seq of the newest turn or message that is not recent; 0 if all are. The latest one always is. */
function lastOldSeq(input: PlanInput): number {
  const sizes = new Map<number, number>()
  for (const entry of input.entries) sizes.set(entry.seq, (sizes.get(entry.seq) ?? 0) + sizeOf([entry], input))
  const [latest, ...older] = [...sizes].toSorted(([a], [b]) => b - a)
  let remainingTokens = Math.min(input.limit, input.tokens) * RECENT_PART - (latest?.[1] ?? 0)
  for (const [seq, size] of older) {
    remainingTokens -= size
    if (remainingTokens < 0) return seq
  }
  return 0
}

/** Results of the latest turn are shortened only if they leave no room for anything else. */
function latestTurnOf(input: PlanInput): Partial<Plan> {
  const { entries, limit, scaled } = input
  const last = entries.at(-1)
  if (!last) return {}
  const results = entries.filter(({ seq, message }) => seq === last.seq && message.role === 'tool')
  const room = limit * RECENT_PART
  if (results.length === 0 || sizeOf(results, input) <= room) return {}
  const chars = (room / results.length / scaled(100)) * 100 * CHARS_PER_TOKEN
  return {
    shortened_through_seq: last.seq,
    max_result_chars: clamp(chars, MIN_RECENT_CHARS, MAX_RECENT_CHARS),
  }
}

/**
 * The first message of the user says what the work is, and the latest what is wanted now. An answer of the run is checked
 * against its schema, so the model has to know it.
 */
function keptMessages(through: number, input: PlanInput): Partial<Plan> {
  const { entries } = input
  const room = input.limit * KEPT_MESSAGES_PART
  const old = entries.filter(({ seq }) => seq <= through)
  const messages = old.filter(({ kind }) => kind === 'user')
  const first = messages.at(0)
  const latest = messages.at(-1)
  const isNeeded = entries.every(({ seq, kind }) => seq <= through || kind !== 'user')
  const keptEntries = [
    ...(first ? [first] : []),
    ...(latest && latest !== first && isNeeded ? [latest] : []),
    ...old.filter(({ kind }) => kind === 'move'),
    ...old.filter((entry) => entry.kind === 'schema' && entry.runId === input.runId),
  ]
  if (keptEntries.length === 0) return {}
  const size = sizeOf(keptEntries, input)
  const chars = (room / keptEntries.length / input.scaled(100)) * 100 * CHARS_PER_TOKEN
  return {
    kept_message_seqs: keptEntries.map(({ seq }) => seq),
    ...(size > room && { max_message_chars: clamp(chars, MIN_MESSAGE_CHARS, Number.MAX_SAFE_INTEGER) }),
  }
}

const clamp = (value: number, min: number, max: number) => Math.round(Math.min(Math.max(value, min), max))
