/** Groups queued firehose items for publishing: events in runs, everything else one by one, and no position left out. */
import type { StoredEvent } from '../event-store.ts'
import type { FirehoseEvent, Notice } from './firehose-record.ts'
import { firehoseEvent } from './firehose-record.ts'
import type { TransientRecord } from '../transient-record.ts'

/** What is to be published, in one order. */
export type Waiting =
  | { readonly kind: 'event'; readonly stored: StoredEvent; readonly of: OfLog }
  /** A log has events that are not queued: what follows comes after them. */
  | { readonly kind: 'head'; readonly of: OfLog }
  | { readonly kind: 'passing'; readonly record: TransientRecord | Notice }

type OfLog = { readonly conversationId: string; readonly seq: number }

export const keyOf = ({ conversationId, seq }: OfLog): string => `${conversationId} ${seq}`

/** Positions that are published but have no queued event: their events are read from the logs. */
export type Gap = { readonly after: number; readonly to: number }

/** The position of an event, and the one of the event before it. */
export type EventPlace = { readonly position: number; readonly previous: number }

type Run =
  | { readonly kind: 'events'; readonly events: FirehoseEvent[] }
  | { readonly kind: 'gap'; readonly gap: Gap }
  /** `at` is its index among the items. */
  | { readonly kind: 'passing'; readonly record: TransientRecord | Notice; readonly at: number }

/**
 * Covers each position after `after`, up to `to`, exactly once and in order. A log may contain events before it reports
 * them, such as those of a fork: what is missing follows from the positions, independent of who reads at the time.
 * `places`: of queued events by `keyOf`; one without a place was published before, or will be as part of a gap.
 */
export function runsOf(
  waiting: readonly Waiting[],
  places: ReadonlyMap<string, EventPlace>,
  epoch: string,
  { after, to }: Gap,
): Run[] {
  const runs: Run[] = []
  let reachedPosition = after
  const fill = (position: number) => {
    if (position > reachedPosition) runs.push({ kind: 'gap', gap: { after: reachedPosition, to: position } })
    reachedPosition = Math.max(reachedPosition, position)
  }
  for (const [at, one] of waiting.entries()) {
    if (one.kind === 'passing') {
      runs.push({ kind: 'passing', record: one.record, at })
      continue
    }
    const { position, previous } = places.get(keyOf(one.of)) ?? { position: 0, previous: 0 }
    if (one.kind === 'head') fill(position)
    if (one.kind === 'head' || position <= reachedPosition) continue
    fill(previous)
    const event = firehoseEvent(position, epoch, one.stored)
    const last = runs.at(-1)
    if (last?.kind === 'events') last.events.push(event)
    else runs.push({ kind: 'events', events: [event] })
    reachedPosition = position
  }
  fill(to)
  return runs
}
