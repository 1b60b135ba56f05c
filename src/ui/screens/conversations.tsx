/** All conversations, those that changed last first, with filters, a search, and archiving of many at once. */
import { useState } from 'preact/hooks'
import type { ConversationSummary } from '../../contract/conversations/summary.ts'
import { FoundEvents } from '../parts/found-events.tsx'
import { WhenLoaded, useLoaded } from '../parts/loaded.tsx'
import { attempt, notify } from '../parts/notices.tsx'
import { useSummaries } from '../parts/summary-pages.ts'
import { SummaryRow } from '../parts/summary-row.tsx'
import { VirtualRows } from '../parts/virtual-rows.tsx'
import { countVersion } from '../state/live.ts'
import { texts } from '../state/preferences.ts'
import { route } from '../state/route.ts'
import { client, may } from '../state/session.ts'
import { short } from '../text/visible.ts'

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
  const list = useSummaries({ archived: showsArchived, ...(q && { q }), ...(status && { status: [status] }) }, PAGE)
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
            aria-label={short(summary.title ?? summary.preview ?? summary.id)}
            onChange={({ currentTarget }) => select(summary.id, currentTarget.checked)}
          />
        </label>
      )}
      <SummaryRow summary={summary} />
    </div>
  )
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
    [q, archived, countVersion.value],
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
