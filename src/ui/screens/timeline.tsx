/** Shows where the time of a conversation went: a bar for each model answer, call and wait of what is loaded. */
import { useMemo, useState } from 'preact/hooks'
import { duration, moment } from '../parts/amounts.ts'
import { Blank } from '../parts/blank.tsx'
import { now } from '../parts/now.ts'
import { TimeStrip } from '../parts/time-strip.tsx'
import { VirtualRows } from '../parts/virtual-rows.tsx'
import type { OpenConversation } from '../state/conversation.ts'
import { texts } from '../state/preferences.ts'
import { titleOfRequest } from '../../contract/requests/request-forms.ts'
import { addressOf } from '../state/route.ts'
import type { SpanKind, TimeRange, TimeSpan } from '../state/timeline.ts'
import { hasOpenSpan, isInRange, spansOf } from '../state/timeline.ts'

export function Timeline({ open }: { readonly open: OpenConversation }) {
  const { inLanguage, nothingFailed, nothingTimed, tabs } = texts.value
  const [hasFailed, setFailed] = useState(false)
  const [range, setRange] = useState<TimeRange>()
  const rows = open.timed.value
  const until = hasOpenSpan(rows) ? now.value : 0
  const spans = useMemo(
    () => spansOf(rows, until, (request) => inLanguage(titleOfRequest(request))),
    [rows, until, inLanguage],
  )
  const inRange = range ? spans.filter((span) => isInRange(span, range)) : spans
  const shownSpans = hasFailed ? inRange.filter(({ isFailed }) => isFailed) : inRange
  const longest = Math.max(1, ...shownSpans.filter(({ kind }) => kind !== 'pause').map(({ ms }) => ms))
  // A list of few rows is always near its start: it would read the whole conversation.
  const isFiltered = range !== undefined || hasFailed
  if (!open.view.value) return <p class="quiet page loading">{texts.value.loading}</p>
  return (
    <div class="page filled">
      <Sums spans={inRange} hasFailed={hasFailed} setFailed={setFailed} />
      {spans.length > 0 && <TimeStrip spans={spans} range={range} setRange={setRange} />}
      {isFiltered && open.hasOlder.value && <Older open={open} first={spans[0]} />}
      {shownSpans.length === 0 ? (
        <Blank text={hasFailed ? nothingFailed : nothingTimed} />
      ) : (
        <VirtualRows
          rows={shownSpans}
          keyOf={({ key }) => key}
          estimate={29}
          label={tabs.timeline}
          onStart={isFiltered ? undefined : () => void open.readOlder()}
          draw={(span) => <Bar span={span} longest={longest} id={open.id} />}
        />
      )}
    </div>
  )
}

type SumsProps = {
  readonly spans: readonly TimeSpan[]
  readonly hasFailed: boolean
  readonly setFailed: (hasFailed: boolean) => void
}

function Sums({ spans, hasFailed, setFailed }: SumsProps) {
  const { models, tools, pauses, onlyFailed } = texts.value
  const sumOf = (kind: SpanKind) => duration(spans.reduce((ms, span) => ms + (span.kind === kind ? span.ms : 0), 0))
  const kinds = [
    ['model', models],
    ['tool', tools],
    ['pause', pauses],
  ] as const
  return (
    <div class="bar">
      {kinds.map(([kind, name]) => (
        <span key={kind} data-sum={kind}>
          <span class={`sample bar-of ${kind}`} /> {name} <strong class="number">{sumOf(kind)}</strong>
        </span>
      ))}
      <label class="option">
        <input type="checkbox" checked={hasFailed} onChange={({ currentTarget }) => setFailed(currentTarget.checked)} />{' '}
        {onlyFailed}
      </label>
    </div>
  )
}

/** Says how far back the times go, and reads on. */
function Older({ open, first }: { readonly open: OpenConversation; readonly first: TimeSpan | undefined }) {
  const { loadedSince, loadOlder } = texts.value
  return (
    <p class="quiet">
      {first && loadedSince(moment(new Date(first.start).toISOString()))}{' '}
      <button type="button" class="link" onClick={() => void open.readOlder()}>
        {loadOlder}
      </button>
    </p>
  )
}

type BarProps = { readonly span: TimeSpan; readonly longest: number; readonly id: string }

/** Waiting is folded: its bar is never longer than the longest work. */
function Bar({ span: { seq, kind, name, start, ms, isFailed }, longest, id }: BarProps) {
  return (
    <a class={`span plain ${isFailed ? 'failed' : ''}`} href={`${addressOf('c', id)}?seq=${seq}`}>
      <time class="quiet number">{moment(new Date(start).toISOString())}</time>
      <span class="name">
        {isFailed && '✕ '}
        {name}
      </span>
      <span class={`bar-of ${kind}`} style={{ width: `${Math.max(0.5, Math.min(100, (100 * ms) / longest))}%` }} />
      <span class="number">{duration(ms)}</span>
    </a>
  )
}
