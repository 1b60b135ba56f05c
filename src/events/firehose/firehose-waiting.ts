/** Groups queued firehose items for publishing: events in runs, everything else one by one, and no position left out. */
import type { FirehoseEvent, Notice } from './firehose-record.ts'
import type { TransientRecord } from '../transient-record.ts'

/** Published in one order. */
export type Waiting = {
  readonly one: FirehoseEvent | TransientRecord | Notice
  /** Its own position if it is an event, otherwise that of the last event before it. */
  readonly position: number
}

/** Positions that are published but have no queued event: their events are read from the logs. */
export type Gap = { readonly after: number; readonly to: number }

type Run =
  | { readonly kind: 'events'; readonly events: FirehoseEvent[] }
  | { readonly kind: 'gap'; readonly gap: Gap }
  /** `at` is its index among the items. */
  | { readonly kind: 'passing'; readonly record: TransientRecord | Notice; readonly at: number }

/**
 * Covers each position after `after`, up to `to`, exactly once and in order. A log may contain events before it reports
 * them, such as those of a fork: what is missing follows from the positions, independent of who reads at the time.
 */
export function runsOf(waiting: readonly Waiting[], { after, to }: Gap): Run[] {
  const runs: Run[] = []
  let reached = after
  const fill = (position: number) => {
    if (position > reached) runs.push({ kind: 'gap', gap: { after: reached, to: position } })
    reached = Math.max(reached, position)
  }
  for (const [at, { one, position }] of waiting.entries()) {
    fill(one.seq === undefined ? position : position - 1)
    if (one.seq === undefined) {
      runs.push({ kind: 'passing', record: one, at })
      continue
    }
    const last = runs.at(-1)
    if (last?.kind === 'events') last.events.push(one)
    else runs.push({ kind: 'events', events: [one] })
    reached = position
  }
  fill(to)
  return runs
}
