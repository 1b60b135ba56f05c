/** How many streams are open on one thing at a time, whichever way they go out. */
import { Problem } from '../../contract/problem.ts'
import { Slots } from '../../lib/slots.ts'

export type StreamSlots = {
  /** Returns an idempotent release function. Throws a `Problem` when there is no slot left. */
  readonly take: (id: string) => () => void
}

/** Seconds: streams end when their readers go, which nobody knows beforehand. */
const RETRY_AFTER_S = 5

/** `max` for each id; `of` names what it is the id of. */
export function createStreamSlots(max: number, of = 'this conversation'): StreamSlots {
  const slots = new Slots({ perKey: max })
  return {
    take(id) {
      const release = slots.take(id)
      if (release) return release
      throw new Problem(
        'too_many_streams',
        `The limit of ${max} open streams on ${of} is reached. Close one, or list the events.`,
        { details: { retry_after: RETRY_AFTER_S } },
      )
    },
  }
}

/** Of the firehose, which there is one of. */
export type FirehoseSlots = { readonly take: () => () => void }

export function createFirehoseSlots(max: number): FirehoseSlots {
  const slots = createStreamSlots(max, 'the firehose')
  return { take: () => slots.take('firehose') }
}
