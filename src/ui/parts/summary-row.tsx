/** One conversation in a list: what it is about, what it does, and what it has cost. */
import type { ConversationSummary } from '../../contract/conversations/summary.ts'
import { texts } from '../state/preferences.ts'
import { addressOf } from '../state/route.ts'
import { age, cost } from './amounts.ts'
import { withoutMarks } from '../text/plain.ts'
import { short } from '../text/visible.ts'
import { now } from './now.ts'
import { StatusMark } from './status.tsx'

/** A row shows fewer characters of what was said. */
const MOST_CHARS = 500

export function SummaryRow({ summary }: { readonly summary: ConversationSummary }) {
  const {
    title,
    preview,
    last_words,
    current_call,
    status,
    queued,
    labels,
    user_id,
    model,
    cost_usd,
    waiting,
    updated_at,
  } = summary
  const words = last_words ?? preview ?? ''
  const doing = current_call
    ? `${current_call.name}: ${current_call.target ?? ''}`
    : withoutMarks(words.slice(0, MOST_CHARS))
  return (
    <a class="summary columns" href={addressOf('c', summary.id)}>
      <StatusMark status={status} queued={queued} />
      <span class="top">
        <strong class="name">{short(title ?? preview ?? texts.value.untitled)}</strong>
        {waiting !== undefined && waiting > 1 && <span class="badge wants">{texts.value.waits(waiting)}</span>}
      </span>
      <span class="below quiet">
        <span class="name">{short(doing)}</span>
        {labels?.map((label) => (
          <span class="badge wide" key={label}>
            {short(label, 30)}
          </span>
        ))}
        <span class="wide">{[user_id, model].flatMap((name) => (name ? [short(name, 30)] : [])).join(' · ')}</span>
      </span>
      <span class="amount quiet number">{cost_usd !== undefined && cost(cost_usd)}</span>
      <time class="age quiet number" dateTime={updated_at}>
        {age(updated_at, now.value)}
      </time>
    </a>
  )
}
