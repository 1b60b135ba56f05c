/** What waits its turn on the firehose, and how it is told together: events in runs, all else one by one. */
import type { FirehoseEvent, Notice } from './firehose-record.ts'
import type { TransientRecord } from '../transient-record.ts'

/** Told in one order. A gap is what a log held before it told us of it: to be read from there. */
export type Waiting = FirehoseEvent | TransientRecord | Notice | Gap

export type Gap = { readonly after: number; readonly to: number }

/** Events that follow on each other, or one thing that is none; `at` is the place of the first. */
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
