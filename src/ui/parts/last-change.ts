/** When something may have changed the files of a conversation, or its processes: what shows them is read again. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { OpenConversation } from '../state/conversation.ts'
import type { ChatRow } from '../state/items.ts'

/** What is read takes a while, as a diff of many files: an agent at work does not make it begin again with each step. */
const REFRESH_MS = 2000

const CHANGING: ReadonlySet<string> = new Set(['Result', 'FileUpdate', 'CommandResult', 'Rewound'])

const changesFiles = (row: ChatRow): boolean =>
  row.kind === 'call' ? row.result !== undefined : row.kind === 'event' && CHANGING.has(row.event.type)

/** Returns the seq of the last event that may have changed something. */
export const useLastChange = (open: OpenConversation): number | undefined =>
  useAtMost(open.rows.value.findLast(changesFiles)?.seq, REFRESH_MS)

/** Returns the value as it is now, and from then on as it is once in so many milliseconds. */
function useAtMost<T>(value: T, everyMs: number): T {
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
