/** What a subscriber has been sent, whatever brought it, and how a test waits for more of it. */

import { PATIENCE_MS } from './patience.ts'

export type Frames<F> = {
  readonly seen: readonly F[]
  readonly add: (...frames: readonly F[]) => void
  /** Nothing more will come. */
  readonly end: () => void
  /** The first, seen already or to come, that fits. Throws when they end, or the time is over, without one. */
  readonly until: (fits: (frame: F) => boolean, timeoutMs?: number) => Promise<F>
}

/** `nameOf` tells a frame in the message of a wait that was in vain. */
export function createFrames<F>(nameOf: (frame: F) => string): Frames<F> {
  const seen: F[] = []
  const waiting = new Set<() => void>()
  let isOver = false
  const wakeAll = () => {
    for (const wake of Array.from(waiting)) wake()
  }
  return {
    seen,
    add(...frames) {
      seen.push(...frames)
      wakeAll()
    },
    end() {
      isOver = true
      wakeAll()
    },
    async until(fits, timeoutMs = PATIENCE_MS) {
      const deadline = Date.now() + timeoutMs
      for (let at = 0; ;) {
        for (; at < seen.length; at++) if (fits(seen[at]!)) return seen[at]!
        if (isOver || Date.now() >= deadline) throw new Error(`no such frame; seen: ${seen.map(nameOf).join(' ')}`)
        await new Promise<void>((resolve) => {
          const wake = () => {
            waiting.delete(wake)
            clearTimeout(timer)
            resolve()
          }
          // oxlint-disable-next-line tests/sleep -- the limit of a wait for a frame
          const timer = setTimeout(wake, Math.max(1, deadline - Date.now()))
          waiting.add(wake)
        })
      }
    },
  }
}
