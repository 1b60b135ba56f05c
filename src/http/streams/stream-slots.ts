/** Limits the number of open streams per conversation, for all transports together. */
import { Problem } from '../../contract/problem.ts'
import { Slots } from '../../lib/slots.ts'

export type StreamSlots = {
  /** Returns an idempotent release function. Throws a `Problem` when there is no slot left. */
  readonly take: (id: string) => () => void
}

/** Seconds: nobody knows when readers will disconnect. */
const RETRY_AFTER_S = 5

/** `max` per id; `of` describes the id in messages. */
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

/** Slots of the firehose, of which there is only one. */
export type FirehoseSlots = { readonly take: () => () => void }

export function createFirehoseSlots(max: number): FirehoseSlots {
  const slots = createStreamSlots(max, 'the firehose')
  return { take: () => slots.take('firehose') }
}
