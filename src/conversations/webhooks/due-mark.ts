/** The mark of one conversation that events may wait for delivery: durable before there are any, so that a start of the server knows without looking. */
import { Problem } from '../../contract/problem.ts'
import { isOutOfRoom } from '../../events/store/log-file.ts'
import { Queue } from '../../lib/queue.ts'

export type DueMark = {
  /** Undefined when it is set, durably; throws the `Problem`s of an append. All who come before it is get the same promise, and go on in the order they came. */
  readonly raise: () => Promise<void> | undefined
  /** Around what may leave something to deliver: begins once the mark is set, if it is needed, at once if it is set already. */
  readonly during: <T>(work: () => Promise<T>, isNeeded: boolean) => Promise<T>
  /** For when nothing waits; not while something is under way that may change that. */
  readonly lower: () => Promise<void>
}

/** `set` and `clear` are never under way at the same time. */
export function createDueMark({ set, clear }: { set: () => Promise<void>; clear: () => Promise<void> }): DueMark {
  let isSet = false
  let raising: Promise<void> | undefined
  let underWay = 0
  const turns = new Queue({ limit: 1 })
  const raise = () => {
    if (isSet || raising) return raising
    raising = turns.run(() => set().catch(refuse))
    const settle = (hasWorked: boolean) => () => {
      isSet = hasWorked
      raising = undefined
    }
    // The first to be told. Until then all wait for the promise, so nobody comes before those who do.
    raising.then(settle(true), settle(false))
    return raising
  }

  return {
    raise,
    during(work, isNeeded) {
      underWay++
      const ready = isNeeded ? raise() : undefined
      return (ready ? ready.then(work) : work()).finally(() => underWay--)
    },
    async lower() {
      if (raising || underWay > 0) return
      isSet = false
      await turns.run(clear)
    },
  }
}

/** Without the mark what follows could be forgotten, so it is refused, as it most likely would be anyway. */
function refuse(cause: unknown): never {
  const code = isOutOfRoom(cause) ? 'storage_full' : 'storage_failed'
  throw new Problem(code, 'There is something to deliver to callbacks, and that could not be noted on the disk.', {
    cause,
  })
}
