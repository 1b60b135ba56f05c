/** Spans of work and waiting of a conversation, on an axis on which waiting is folded. Pure. */
import { titleOf } from '../../contract/events/call-title.ts'
import { short, visible } from '../text/visible.ts'
import { hasCallFailed } from './call-result.ts'
import type { ChatRow } from './items.ts'

export type SpanKind = 'model' | 'tool' | 'pause'

/** Times in milliseconds since 1970. */
export type TimeSpan = {
  readonly key: string
  readonly seq: number
  readonly kind: SpanKind
  readonly name: string
  readonly start: number
  readonly ms: number
  readonly isFailed: boolean
}

export type TimeRange = { readonly from: number; readonly to: number }

export const endOfSpan = ({ start, ms }: TimeSpan): number => start + ms

export const isInRange = (span: TimeSpan, { from, to }: TimeRange): boolean =>
  span.start <= to && endOfSpan(span) >= from

/** What has not ended lasts until `now`. `nameOfRequest` says what a request asks for. */
export function spansOf(
  rows: readonly ChatRow[],
  now: number,
  nameOfRequest: (request: (ChatRow & { kind: 'request' })['request']) => string,
): TimeSpan[] {
  return rows.flatMap((row): TimeSpan[] => {
    const { key, seq } = row
    if (row.kind === 'call') {
      const { use, result } = row
      const start = Date.parse(use.timestamp)
      const ms = result ? result.duration_ms : Math.max(0, now - start)
      const name = `${visible(use.name)} ${short(titleOf(use.name, use.input), 80)}`
      return [{ key, seq, kind: 'tool', name, start, ms, isFailed: hasCallFailed(result) }]
    }
    if (row.kind === 'request') {
      const start = Date.parse(row.request.timestamp)
      const ms = Math.max(0, (row.end ? Date.parse(row.end.timestamp) : now) - start)
      return [{ key, seq, kind: 'pause', name: nameOfRequest(row.request), start, ms, isFailed: false }]
    }
    const { event } = row
    const end = Date.parse(event.timestamp)
    if (event.type === 'ErrorEvent')
      return [{ key, seq, kind: 'model', name: short(event.message), start: end, ms: 0, isFailed: true }]
    if (event.type !== 'AssistantMessage' || event.duration_ms === undefined) return []
    const ms = event.duration_ms
    return [{ key, seq, kind: 'model', name: visible(event.model), start: end - ms, ms, isFailed: false }]
  })
}

/** Whether a span grows with the time. */
export const hasOpenSpan = (rows: readonly ChatRow[]): boolean =>
  rows.some((row) => (row.kind === 'call' && !row.result) || (row.kind === 'request' && !row.end))

type Work = { readonly start: number; readonly end: number; readonly at: number }

/** Time without work is at most this part of all work on the axis, or a second. */
const FOLDED_PART = 1 / 50
const SECOND = 1000

/** An axis from 0 to 1 on which work has its length, and time without work is short. */
export class FoldedAxis {
  readonly #work: readonly Work[]
  readonly #fold: number
  readonly #length: number

  constructor(spans: readonly TimeSpan[]) {
    const mergedWork: { start: number; end: number }[] = []
    for (const span of spans.filter(({ kind }) => kind !== 'pause').toSorted((a, b) => a.start - b.start)) {
      const last = mergedWork.at(-1)
      if (last && span.start <= last.end) last.end = Math.max(last.end, endOfSpan(span))
      else mergedWork.push({ start: span.start, end: endOfSpan(span) })
    }
    const workMs = mergedWork.reduce((sum, { start, end }) => sum + end - start, 0)
    this.#fold = Math.max(SECOND, workMs * FOLDED_PART)
    let at = 0
    this.#work = mergedWork.map(({ start, end }, index) => {
      const before = mergedWork[index - 1]
      if (before) at += before.end - before.start + Math.min(this.#fold, start - before.end)
      return { start, end, at }
    })
    const last = this.#work.at(-1)
    this.#length = last ? Math.max(1, last.at + last.end - last.start) : 1
  }

  /** Returns where a time is. Times before and after all work are at the ends. */
  placeOf(time: number): number {
    const index = this.#work.findLastIndex(({ start }) => start <= time)
    const work = this.#work[index]
    if (!work) return 0
    const next = this.#work[index + 1]
    const workEnd = work.at + Math.min(time, work.end) - work.start
    if (time <= work.end || !next) return workEnd / this.#length
    return (workEnd + ((time - work.end) / (next.start - work.end)) * (next.at - workEnd)) / this.#length
  }

  /** Returns the time at a place: the reverse of `placeOf`. */
  timeAt(place: number): number {
    const at = Math.min(1, Math.max(0, place)) * this.#length
    const index = this.#work.findLastIndex((work) => work.at <= at)
    const work = this.#work[index]
    if (!work) return 0
    const length = work.end - work.start
    const next = this.#work[index + 1]
    if (at <= work.at + length || !next) return work.start + Math.min(length, at - work.at)
    const share = (at - work.at - length) / (next.at - work.at - length)
    return work.end + share * (next.start - work.end)
  }
}

/** `kind`: undefined where nothing happens, not even a wait. `share`: how much of the bucket is work; the rest is a pause. */
export type AxisBucket = { readonly kind: SpanKind | undefined; readonly share: number; readonly isFailed: boolean }

/** Returns what happens in each of so many equal parts of the axis. */
export function bucketsOf(spans: readonly TimeSpan[], axis: FoldedAxis, count: number): AxisBucket[] {
  const sums = Array.from({ length: count }, () => ({ model: 0, tool: 0, pause: 0, isFailed: false }))
  for (const span of spans) {
    const from = axis.placeOf(span.start) * count
    const to = axis.placeOf(endOfSpan(span)) * count
    for (
      let index = Math.min(count - 1, Math.floor(from));
      index < Math.min(count, Math.max(to, from + 1e-9));
      index++
    ) {
      const sum = sums[index]
      if (!sum) continue
      sum[span.kind] += Math.min(to, index + 1) - Math.max(from, index)
      sum.isFailed ||= span.isFailed
    }
  }
  return sums.map(({ model, tool, pause, isFailed }) => {
    const share = Math.min(1, model + tool)
    const idle = pause > 0 ? 'pause' : undefined
    return { kind: share === 0 ? idle : model > tool ? 'model' : 'tool', share, isFailed }
  })
}
