/** Shows where the time of a conversation went: a bar for each model answer, call and wait of what is loaded. */
import { useState } from 'preact/hooks'
import { titleOf } from '../../contract/events/call-title.ts'
import type { OpenConversation } from '../state/conversation.ts'
import { hasCallFailed } from '../state/call-result.ts'
import type { ChatRow } from '../state/items.ts'
import { texts } from '../state/preferences.ts'
import { duration, moment } from '../parts/amounts.ts'
import { short, visible } from '../text/visible.ts'
import { VirtualRows } from '../parts/virtual-rows.tsx'

type Span = {
  readonly key: string
  readonly kind: 'model' | 'tool' | 'pause'
  readonly name: string
  readonly start: number
  readonly ms: number
  readonly isFailed: boolean
}

export function Timeline({ open }: { readonly open: OpenConversation }) {
  const { onlyFailed, models, tools, pauses, tabs } = texts.value
  const [hasFailed, setFailed] = useState(false)
  const spans = open.rows.value.flatMap(spanOf)
  const longest = Math.max(1, ...spans.filter(({ kind }) => kind !== 'pause').map(({ ms }) => ms))
  const sum = (kind: Span['kind']) => duration(spans.reduce((ms, span) => ms + (span.kind === kind ? span.ms : 0), 0))
  return (
    <div class="page filled">
      <div class="bar">
        <span>
          {models} <strong class="number">{sum('model')}</strong>
        </span>
        <span>
          {tools} <strong class="number">{sum('tool')}</strong>
        </span>
        <span>
          {pauses} <strong class="number">{sum('pause')}</strong>
        </span>
        <label class="option">
          <input
            type="checkbox"
            checked={hasFailed}
            onChange={({ currentTarget }) => setFailed(currentTarget.checked)}
          />{' '}
          {onlyFailed}
        </label>
      </div>
      <VirtualRows
        rows={hasFailed ? spans.filter(({ isFailed }) => isFailed) : spans}
        keyOf={({ key }) => key}
        estimate={29}
        label={tabs.timeline}
        onStart={() => void open.readOlder()}
        draw={(span) => <Bar span={span} longest={longest} />}
      />
    </div>
  )
}

function Bar({
  span: { kind, name, start, ms, isFailed },
  longest,
}: {
  readonly span: Span
  readonly longest: number
}) {
  return (
    <div class={`span ${isFailed ? 'failed' : ''}`}>
      <time class="quiet number">{moment(new Date(start).toISOString())}</time>
      <span class="name">{name}</span>
      <span class={`bar-of ${kind}`} style={{ width: `${Math.max(0.5, Math.min(100, (100 * ms) / longest))}%` }} />
      <span class="number">{duration(ms)}</span>
    </div>
  )
}

/** Waiting is folded: its bar is never longer than the longest work. */
function spanOf(row: ChatRow): Span[] {
  const { key } = row
  if (row.kind === 'call') {
    const ms = row.result?.duration_ms ?? 0
    const start = Date.parse(row.use.timestamp)
    return [
      {
        key,
        kind: 'tool',
        name: `${visible(row.use.name)} ${short(titleOf(row.use.input), 80)}`,
        start,
        ms,
        isFailed: hasCallFailed(row.result),
      },
    ]
  }
  if (row.kind === 'request') {
    const start = Date.parse(row.request.timestamp)
    const ms = row.end ? Date.parse(row.end.timestamp) - start : 0
    return [{ key, kind: 'pause', name: texts.value.asks[row.request.kind], start, ms, isFailed: false }]
  }
  const { event } = row
  if (event.type === 'ErrorEvent')
    return [
      { key, kind: 'model', name: short(event.message), start: Date.parse(event.timestamp), ms: 0, isFailed: true },
    ]
  if (event.type !== 'AssistantMessage' || event.duration_ms === undefined) return []
  const ms = event.duration_ms
  return [
    { key, kind: 'model', name: visible(event.model), start: Date.parse(event.timestamp) - ms, ms, isFailed: false },
  ]
}
