/**
 * The place of an agent in a queue, lent to its subagents while it waits for them. The agent itself never needs it then,
 * so that subagents can always work, whatever the limit; further ones take further places of the queue.
 */
import type { Place } from '../../lib/queue.ts'
import { Queue } from '../../lib/queue.ts'

export class LentPlaces {
  readonly #own = new Queue({ limit: 1 })
  readonly #queue: Pick<Queue, 'take'>

  constructor(queue: Pick<Queue, 'take'>) {
    this.#queue = queue
  }

  take({ signal }: { readonly signal: AbortSignal }): Place {
    const own = this.#own.take({ signal })
    if (own.isFree) return own
    const further = this.#queue.take({ signal })
    if (further.isFree) {
      own.leave()
      return further
    }
    return firstOf(own, further)
  }
}

/** The place that is given first; the other one is left. */
function firstOf(a: Place, b: Place): Place {
  let isTaken = false
  const givenTo = async (place: Place, other: Place) => {
    const isGiven = await place.given
    // Both may be given at the same time.
    if (isGiven && isTaken) place.leave()
    else if (isGiven) other.leave()
    isTaken ||= isGiven
    return isGiven
  }
  const both = [givenTo(a, b), givenTo(b, a)]
  const given = Promise.all(both).then((each) => each.some(Boolean))
  const leave = () => {
    a.leave()
    b.leave()
  }
  return { isFree: false, given, leave }
}
