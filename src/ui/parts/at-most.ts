/** Follows a value that may change all the time, in steps. */
import { useEffect, useRef, useState } from 'preact/hooks'

/** Returns the value as it is now, and from then on as it is once in so many milliseconds. */
export function useAtMost<T>(value: T, everyMs: number): T {
  const [followedValue, setFollowedValue] = useState(value)
  const latest = useRef(value)
  latest.current = value
  const isBehind = followedValue !== value
  useEffect(() => {
    if (!isBehind) return undefined
    const timer = setTimeout(() => setFollowedValue(latest.current), everyMs)
    return () => clearTimeout(timer)
  }, [isBehind, followedValue])
  return followedValue
}
