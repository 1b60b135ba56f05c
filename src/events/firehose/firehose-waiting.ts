/** Groups queued firehose items for publishing: events in runs, everything else one by one. */
import type { FirehoseEvent, Notice } from './firehose-record.ts'
import type { TransientRecord } from '../transient-record.ts'

/**
 * Published in one order. A gap stands for events that a log contained before it reported them: they are read from the
 * log.
 */
export type Waiting = FirehoseEvent | TransientRecord | Notice | Gap

export type Gap = { readonly after: number; readonly to: number }

/** Consecutive events, or one item that is not an event; `at` is the index of the first. */
type Run = { readonly at: number } & (
  | { readonly events: FirehoseEvent[]; readonly other?: never }
  | { readonly events?: never; readonly other: TransientRecord | Notice | Gap }
)

export function runsOf(waiting: readonly Waiting[]): Run[] {
  const runs: Run[] = []
  for (const [at, one] of waiting.entries()) {
    const last = runs.at(-1)
    if ('to' in one || one.seq === undefined) runs.push({ at, other: one })
    else if (last?.events) last.events.push(one)
    else runs.push({ at, events: [one] })
  }
  return runs
}
