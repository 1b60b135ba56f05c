/** A list of conversations as far as somebody has scrolled. It is read once, and then follows what the server sends. */
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { ConversationSummary } from '../../contract/conversations/summary.ts'
import { onSummaryChange } from '../state/live.ts'
import { client, connections, messageOf } from '../state/session.ts'
import type { SummaryChange, SummaryFilter } from '../state/summary-rows.ts'
import { withChange } from '../state/summary-rows.ts'

/** Rows of the pages after the first one. */
const FURTHER = 500

export function useSummaries(filter: SummaryFilter, firstRows: number) {
  const key = JSON.stringify(filter)
  const [rows, setRows] = useState<readonly ConversationSummary[]>()
  const [fault, setFault] = useState<string>()
  const [round, setRound] = useState(0)
  const next = useRef<string | undefined>(undefined)
  const isReading = useRef(false)
  /** What changes while the first page is read, which may not know it yet. */
  const changes = useRef<SummaryChange[] | undefined>(undefined)
  const shownKey = useRef(key)
  const shownCount = useRef(0)
  shownCount.current = shownKey.current === key ? (rows?.length ?? 0) : 0
  const firstPage = useRef<unknown>(undefined)
  const read = async (limit: number, signal?: AbortSignal) => {
    const query = {
      ...filter,
      status: filter.status && [...filter.status],
      label: filter.label && [...filter.label],
      sort: 'updated_at' as const,
      limit,
    }
    return await client().conversations.summaries({ ...query, page_id: signal ? undefined : next.current }, { signal })
  }
  const apply = (before: readonly ConversationSummary[], change: SummaryChange) =>
    withChange(before, change, { filter, isWhole: next.current === undefined })

  useLayoutEffect(
    () =>
      onSummaryChange((change) => {
        changes.current?.push(change)
        setRows((before) => before && apply(before, change))
      }),
    [key],
  )
  useLayoutEffect(() => {
    const abort = new AbortController()
    const readFirst = async () => {
      changes.current = []
      const page = await read(Math.min(Math.max(firstRows, shownCount.current), FURTHER), abort.signal)
      const missedChanges = changes.current ?? []
      changes.current = undefined
      const isSame = shownKey.current === key
      shownKey.current = key
      firstPage.current = page
      setFault(undefined)
      setRows((before = []) => {
        const isLonger = isSame && before.length > page.items.length && page.next_page_id !== null
        if (!isLonger) next.current = page.next_page_id ?? undefined
        const fresh = new Set(page.items.map(({ id }) => id))
        // What is not in the page belongs after it, or is gone.
        const end = page.items.at(-1)?.updated_at ?? ''
        const further = isLonger ? before.filter(({ id, updated_at }) => !fresh.has(id) && updated_at <= end) : []
        return missedChanges.reduce(apply, [...page.items, ...further])
      })
    }
    readFirst().catch((error: unknown) => !abort.signal.aborted && setFault(messageOf(error)))
    return () => abort.abort()
  }, [key, connections.value, round])
  const more = async () => {
    if (next.current === undefined || isReading.current) return
    isReading.current = true
    const first = firstPage.current
    try {
      const page = await read(FURTHER)
      // These rows follow those of another list, with other filters.
      if (firstPage.current !== first) return
      next.current = page.next_page_id ?? undefined
      setRows((before = []) => {
        const knownIds = new Set(before.map(({ id }) => id))
        return [...before, ...page.items.filter(({ id }) => !knownIds.has(id))]
      })
    } catch (error) {
      setFault(messageOf(error))
    } finally {
      isReading.current = false
    }
  }
  return { rows, fault, more, again: () => setRound((before) => before + 1) }
}
