/** Decides when a card takes an answer: a click or a key that was meant for what was there before does nothing. */
import type { RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'

/** How long a card must have been as it is, where it is; and the pause between two decisions, milliseconds. */
const ARMED_AFTER_MS = 500
const LOOK_MS = 100
const MOVED_PX = 4

let decidedAt = -Infinity

/** Begins the pause before the next decision: what has the focus now is another card. */
export const pauseDecisions = (): void => void (decidedAt = performance.now())

/**
 * `content` names what the card shows. `isArmed`: the card has stood still for a moment. `decides` says whether a decision
 * counts now, and begins the pause before the next one.
 */
export function useArmed(card: RefObject<HTMLElement | null>, content: string) {
  const [armedContent, setArmed] = useState<string>()
  const stands = useRef({ top: NaN, since: Infinity })
  /** Returns since when the card is where it is: cards move when another one disappears, and when rows arrive. */
  const look = (): number => {
    const top = card.current?.getBoundingClientRect().top ?? NaN
    const isSame = Math.abs(top - stands.current.top) <= MOVED_PX
    if (!isSame) stands.current = { top, since: performance.now() }
    return stands.current.since
  }
  useEffect(() => {
    stands.current = { top: NaN, since: Infinity }
    const timer = setInterval(() => {
      if (performance.now() - look() >= ARMED_AFTER_MS) setArmed(content)
    }, LOOK_MS)
    return () => clearInterval(timer)
  }, [content])
  const decides = (): boolean => {
    if (performance.now() - Math.max(look(), decidedAt) < ARMED_AFTER_MS) return false
    pauseDecisions()
    return true
  }
  return { isArmed: armedContent === content, decides }
}
