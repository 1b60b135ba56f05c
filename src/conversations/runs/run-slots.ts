/** How many runs work at the same time, over all conversations: places are given in the order in which they were asked for. */

export type RunSlots = {
  /** Never throws. Who asks has to leave in the end, given the place or not. */
  readonly take: (signal: AbortSignal) => Place
  readonly active: () => number
  readonly waiting: () => number
}

export type Place = {
  /** Whether there was one at once. */
  readonly isFree: boolean
  /** Resolves when it is there; to false when the signal came first, or it was left. */
  readonly given: Promise<boolean>
  /** Lets the next one in. Twice is fine. */
  readonly leave: () => void
}

export function createRunSlots(max: number): RunSlots {
  const queue = new Set<() => void>()
  let active = 0

  function letIn(): void {
    for (const enter of queue) {
      if (active >= max) return
      queue.delete(enter)
      enter()
    }
  }

  return {
    active: () => active,
    waiting: () => queue.size,
    take(signal) {
      const { promise: given, resolve } = Promise.withResolvers<boolean>()
      let isInside = false
      const enter = () => {
        active++
        isInside = true
        signal.removeEventListener('abort', giveUp)
        resolve(true)
      }
      const giveUp = () => {
        queue.delete(enter)
        resolve(false)
      }
      const leave = () => {
        signal.removeEventListener('abort', giveUp)
        giveUp()
        if (!isInside) return
        isInside = false
        active--
        letIn()
      }
      if (active < max) enter()
      else if (signal.aborted) giveUp()
      else {
        queue.add(enter)
        signal.addEventListener('abort', giveUp, { once: true })
      }
      return { isFree: isInside, given, leave }
    },
  }
}
