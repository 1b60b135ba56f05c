/** All conversations, those that changed last first, with filters, a search, and archiving of many at once. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { ConversationSummary } from '../../contract/conversations/summary.ts'
import type { QueryFor } from '../../client/client.ts'
import { FoundEvents } from '../parts/found-events.tsx'
import { WhenLoaded, useLoaded } from '../parts/loaded.tsx'
import { attempt, notify } from '../parts/notices.tsx'
import { SummaryRow } from '../parts/summary-row.tsx'
import { VirtualRows } from '../parts/virtual-rows.tsx'
import { listVersion } from '../state/live.ts'
import { texts } from '../state/preferences.ts'
import { route } from '../state/route.ts'
import { client, may, messageOf } from '../state/session.ts'

type Query = QueryFor<'listConversationSummaries'>
const STATUSES = [
  'running',
  'waiting_for_confirmation',
  'waiting_for_input',
  'paused',
  'error',
  'finished',
  'idle',
] as const
type Filter = (typeof STATUSES)[number]

const PAGE = 100

export function Conversations() {
  const { conversations, search, noConversations } = texts.value
  const [q, setQ] = useState(route.value.query.get('q') ?? '')
  const [status, setStatus] = useState<Filter>()
  const [showsArchived, setArchived] = useState(false)
  const query: Query = {
    sort: 'updated_at',
    archived: showsArchived,
    ...(q && { q }),
    ...(status && { status: [status] }),
  }
  const list = usePages(query)
  const [selectedIds, setSelected] = useState<ReadonlySet<string>>(new Set())
  const select = (id: string, isOn: boolean) =>
    setSelected(new Set([...selectedIds].filter((other) => other !== id).concat(isOn ? [id] : [])))
  return (
    <section class="page filled">
      <h1>{conversations}</h1>
      <div class="bar">
        <input
          type="search"
          data-search
          placeholder={search}
          aria-label={search}
          value={q}
          onInput={({ currentTarget }) => setQ(currentTarget.value)}
        />
        <Filters q={q} status={status} archived={showsArchived} setStatus={setStatus} setArchived={setArchived} />
        {selectedIds.size > 0 && (
          <SelectedActions
            ids={selectedIds}
            archived={showsArchived}
            done={() => (setSelected(new Set()), list.again())}
          />
        )}
      </div>
      {list.fault && <p class="fault">{list.fault}</p>}
      <FoundEvents q={q} />
      {list.rows?.length === 0 && <p class="quiet">{noConversations}</p>}
      {list.rows === undefined && !list.fault && <p class="quiet">{texts.value.loading}</p>}
      {list.rows && list.rows.length > 0 && (
        <VirtualRows
          rows={list.rows}
          keyOf={({ id }) => id}
          estimate={57}
          label={conversations}
          onEnd={() => void list.more()}
          draw={(summary) => <Row summary={summary} isSelected={selectedIds.has(summary.id)} select={select} />}
        />
      )}
    </section>
  )
}

type RowProps = {
  readonly summary: ConversationSummary
  readonly isSelected: boolean
  readonly select: (id: string, isOn: boolean) => void
}

function Row({ summary, isSelected, select }: RowProps) {
  return (
    <div class="selectable">
      {may('write') && (
        <label class="hit">
          <input
            type="checkbox"
            checked={isSelected}
            aria-label={summary.title ?? summary.preview ?? summary.id}
            onChange={({ currentTarget }) => select(summary.id, currentTarget.checked)}
          />
        </label>
      )}
      <SummaryRow summary={summary} />
    </div>
  )
}

/** Pages as far as somebody has scrolled. The first one follows what happens; a further one is read once. */
function usePages(query: Query) {
  const key = JSON.stringify(query)
  const [rows, setRows] = useState<readonly ConversationSummary[]>()
  const [fault, setFault] = useState<string>()
  const [round, setRound] = useState(0)
  const next = useRef<string | undefined>(undefined)
  const isReading = useRef(false)
  useEffect(() => {
    const abort = new AbortController()
    const readPage = async () => {
      const page = await client().conversations.summaries({ ...query, limit: PAGE }, { signal: abort.signal })
      setFault(undefined)
      setRows((before = []) => {
        const isLonger = before.length > PAGE && page.next_page_id !== null
        if (!isLonger) next.current = page.next_page_id ?? undefined
        const fresh = new Set(page.items.map(({ id }) => id))
        return isLonger ? [...page.items, ...before.filter(({ id }) => !fresh.has(id))] : page.items
      })
    }
    readPage().catch((error: unknown) => !abort.signal.aborted && setFault(messageOf(error)))
    return () => abort.abort()
  }, [key, listVersion.value, round])
  const more = async () => {
    if (next.current === undefined || isReading.current) return
    isReading.current = true
    try {
      const page = await client().conversations.summaries({ ...query, limit: 5 * PAGE, page_id: next.current })
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
  return { rows, fault, more, again: () => setRound(round + 1) }
}

type FilterProps = {
  readonly q: string
  readonly status: Filter | undefined
  readonly archived: boolean
  readonly setStatus: (status: Filter | undefined) => void
  readonly setArchived: (archived: boolean) => void
}

function Filters({ q, status, archived, setStatus, setArchived }: FilterProps) {
  const counts = useLoaded(
    (signal) => client().conversations.count({ by: 'status', archived, ...(q && { q }) }, { signal }),
    [q, archived, listVersion.value],
  )
  return (
    <WhenLoaded
      of={counts}
      draw={({ count, by_status = {} }) => (
        <div class="filters">
          <button type="button" aria-pressed={status === undefined} onClick={() => setStatus(undefined)}>
            {texts.value.all} <span class="number">{count}</span>
          </button>
          {STATUSES.filter((name) => by_status[name] || name === status).map((name) => (
            <button
              type="button"
              key={name}
              aria-pressed={status === name}
              onClick={() => setStatus(status === name ? undefined : name)}
            >
              {texts.value.status[name]} <span class="number">{by_status[name] ?? 0}</span>
            </button>
          ))}
          <button type="button" aria-pressed={archived} onClick={() => setArchived(!archived)}>
            {texts.value.archived}
          </button>
        </div>
      )}
    />
  )
}

type SelectedProps = { readonly ids: ReadonlySet<string>; readonly archived: boolean; readonly done: () => void }

function SelectedActions({ ids, archived, done }: SelectedProps) {
  const { selected, archive, restore, archivedCount } = texts.value
  const set = async (isArchived: boolean) => {
    for (const id of ids) await client().conversation(id).updateConfig({ archived: isArchived })
    done()
  }
  const start = async () => {
    await set(!archived)
    if (!archived) notify(archivedCount(ids.size), { undo: () => attempt(() => set(false)) })
  }
  return (
    <div class="filters">
      <span>{selected(ids.size)}</span>
      <button type="button" onClick={() => attempt(start)}>
        {archived ? restore : archive}
      </button>
    </div>
  )
}
