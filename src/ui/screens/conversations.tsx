/** All conversations, those that changed last first, with filters, a search, and archiving of many at once. */
import { memo } from 'preact/compat'
import { useCallback, useState } from 'preact/hooks'
import type { ConversationSummary } from '../../contract/conversations/summary.ts'
import { Action } from '../parts/action.tsx'
import { Blank } from '../parts/blank.tsx'
import { FoundEvents } from '../parts/found-events.tsx'
import { WhenLoaded, useLoaded } from '../parts/loaded.tsx'
import { attempt, notify } from '../parts/notices.tsx'
import { useSummaries } from '../parts/summary-pages.ts'
import { SummaryRow } from '../parts/summary-row.tsx'
import { VirtualRows } from '../parts/virtual-rows.tsx'
import { countVersion } from '../state/live.ts'
import { texts } from '../state/preferences.ts'
import { listQueryOf, withFilter } from '../state/list-query.ts'
import type { FilterName, ListQuery } from '../state/list-query.ts'
import { addressOf, route, setQuery } from '../state/route.ts'
import { AgentServerError } from '../../client/client.ts'
import type { QueryFor } from '../../client/client.ts'
import { client, may, mayCreate } from '../state/session.ts'
import { short } from '../text/visible.ts'
import { ValueFilters } from './value-filters.tsx'

const STATUSES = [
  'running',
  'waiting_for_confirmation',
  'waiting_for_input',
  'waiting_for_client',
  'paused',
  'error',
  'finished',
  'idle',
  'cancelled',
] as const
type Filter = (typeof STATUSES)[number]

const PAGE = 100

export function Conversations() {
  const { conversations, search, retry } = texts.value
  const { query } = route.value
  const text = query.get('q') ?? ''
  const status = STATUSES.find((name) => name === query.get('status'))
  const showsArchived = query.has('archived')
  const [selectedIds, setSelected] = useState<ReadonlySet<string>>(new Set())
  const set = (changes: { q?: string; status?: Filter | undefined; archived?: string | undefined }) => {
    // Nothing is done with what is not in the list any more.
    setSelected(new Set())
    setQuery({ q: text, status, archived: showsArchived ? 'true' : undefined, ...changes })
  }
  const filter = listQueryOf(text)
  const list = useSummaries({ archived: showsArchived, ...filter, ...(status && { status: [status] }) }, PAGE)
  const select = useCallback(
    (id: string, isOn: boolean) =>
      setSelected((before) => new Set([...before].filter((other) => other !== id).concat(isOn ? [id] : []))),
    [],
  )
  return (
    <section class="page filled">
      <h1>{conversations}</h1>
      <div class="bar">
        <input
          type="search"
          data-search
          placeholder={search}
          aria-label={search}
          value={text}
          onInput={({ currentTarget }) => set({ q: currentTarget.value })}
        />
        <Filters
          isHidden={selectedIds.size > 0}
          filter={filter}
          status={status}
          archived={showsArchived}
          setStatus={(chosenStatus) => set({ status: chosenStatus })}
          setValue={(name, value) => set({ q: withFilter(text, name, value) })}
          setArchived={(isOn) => set({ archived: isOn ? 'true' : undefined })}
        />
        {selectedIds.size > 0 && (
          <SelectedActions
            ids={selectedIds}
            archived={showsArchived}
            clear={() => setSelected(new Set())}
            done={list.again}
          />
        )}
      </div>
      {list.fault && (
        <Blank text={list.fault} isFault>
          <button type="button" onClick={list.again}>
            {retry}
          </button>
        </Blank>
      )}
      {list.rows?.length === 0 && !list.fault && (
        <NoConversations
          isFiltered={text !== '' || status !== undefined}
          archived={showsArchived}
          showAll={() => set({ q: '', status: undefined, archived: undefined })}
        />
      )}
      {list.rows === undefined && !list.fault && <p class="quiet loading">{texts.value.loading}</p>}
      {list.rows && list.rows.length > 0 && (
        <VirtualRows
          rows={list.rows}
          keyOf={({ id }) => id}
          estimate={56}
          label={conversations}
          onEnd={() => void list.more()}
          draw={(summary) => <Row summary={summary} isSelected={selectedIds.has(summary.id)} select={select} />}
        />
      )}
      <FoundEvents q={filter.q ?? ''} />
    </section>
  )
}

type NoneProps = { readonly isFiltered: boolean; readonly archived: boolean; readonly showAll: () => void }

function NoConversations({ isFiltered, archived, showAll }: NoneProps) {
  const { noConversations, empty, noneYet, allConversations, startAgent } = texts.value
  return (
    <Blank text={isFiltered ? noConversations : archived ? empty : noneYet}>
      {(isFiltered || archived) && (
        <button type="button" onClick={showAll}>
          {allConversations}
        </button>
      )}
      {!isFiltered && !archived && mayCreate() && (
        <a class="button" href={addressOf('new')}>
          {startAgent}
        </a>
      )}
    </Blank>
  )
}

type RowProps = {
  readonly summary: ConversationSummary
  readonly isSelected: boolean
  readonly select: (id: string, isOn: boolean) => void
}

/** Drawn again when it changes, not in each frame in which somebody scrolls. */
const Row = memo(({ summary, isSelected, select }: RowProps) => {
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
})

type FilterProps = {
  /** What is done with the selected ones is in their place, so that the list does not move. */
  readonly isHidden: boolean
  readonly filter: ListQuery
  readonly status: Filter | undefined
  readonly archived: boolean
  readonly setStatus: (status: Filter | undefined) => void
  readonly setValue: (name: FilterName, value: string | undefined) => void
  readonly setArchived: (archived: boolean) => void
}

const VALUES = ['label', 'model', 'user_id'] as const

function Filters({ isHidden, filter, status, archived, setStatus, setValue, setArchived }: FilterProps) {
  const counts = useLoaded(
    async (signal) => {
      const query = { ...filter, archived, label: filter.label && [...filter.label] }
      const countIn = (changes: QueryFor<'countConversations'>) =>
        client().conversations.count({ ...query, ...changes }, { signal })
      if (!status) return await countIn({ by: ['status', ...VALUES] })
      // The other statuses are counted as well, to choose another one.
      const [byStatus, values] = await Promise.all([
        countIn({ by: ['status'] }),
        countIn({ status: [status], by: [...VALUES] }),
      ])
      return { ...values, ...byStatus }
    },
    [JSON.stringify(filter), status, archived],
    countVersion.value,
  )
  return (
    <WhenLoaded
      of={counts}
      draw={({ count, by_status = {}, ...values }) => (
        <div class="filters scrolled" hidden={isHidden}>
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
              <span class="word">{texts.value.status[name]}</span> <span class="number">{by_status[name] ?? 0}</span>
            </button>
          ))}
          <button type="button" aria-pressed={archived} onClick={() => setArchived(!archived)}>
            {texts.value.archived}
          </button>
          <ValueFilters counts={values} filter={filter} set={setValue} />
        </div>
      )}
    />
  )
}

/** Somebody may have deleted it meanwhile: the others are archived. */
function unlessGone(error: unknown): void {
  if (!(error instanceof AgentServerError) || ![404, 410].includes(error.status ?? 0)) throw error
}

type SelectedProps = {
  readonly ids: ReadonlySet<string>
  readonly archived: boolean
  readonly clear: () => void
  readonly done: () => void
}

function SelectedActions({ ids, archived, clear, done }: SelectedProps) {
  const { selected, archive, restore, archivedCount, cancel } = texts.value
  const set = async (isArchived: boolean) => {
    for (const id of ids) await client().conversation(id).updateConfig({ archived: isArchived }).catch(unlessGone)
    done()
  }
  const start = async () => {
    await set(!archived)
    clear()
    if (!archived) notify(archivedCount(ids.size), { undo: () => attempt(() => set(false)) })
  }
  return (
    <div class="filters">
      <span>{selected(ids.size)}</span>
      <Action class="act" act={start}>
        {archived ? restore : archive}
      </Action>
      <button type="button" onClick={clear}>
        {cancel}
      </button>
    </div>
  )
}
