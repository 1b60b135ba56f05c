/** How many streams are open: so many may be on one conversation, whichever way they go out. */
import { Problem } from '../contract/problem.ts'

export type StreamSlots = {
  /** Answers how to give the place back; twice is fine. Throws a `Problem` when there is none. */
  readonly take: (conversationId: string) => () => void
}

/** Seconds: streams end when their readers go, which nobody knows beforehand. */
const RETRY_AFTER_S = 5

export function createStreamSlots(max: number): StreamSlots {
  const open = new Map<string, number>()
  return {
    take(conversationId) {
      const count = open.get(conversationId) ?? 0
      if (count >= max) {
        throw new Problem(
          'too_many_streams',
          `There are ${max} streams open on this conversation, and no more may be; close one, or list the events.`,
          { details: { retry_after: RETRY_AFTER_S } },
        )
      }
      open.set(conversationId, count + 1)
      let isOpen = true
      return () => {
        if (!isOpen) return
        isOpen = false
        const left = open.get(conversationId)! - 1
        if (left > 0) open.set(conversationId, left)
        else open.delete(conversationId)
      }
    },
  }
}
