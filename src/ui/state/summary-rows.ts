/** The rows of a list of conversations, those that changed last first, and what a change makes of them. Pure. */
import type { ConversationSummary } from '../../contract/conversations/summary.ts'
import type { ListQuery } from './list-query.ts'

/** Has no summary if the conversation was deleted. */
export type SummaryChange = { readonly id: string; readonly summary?: ConversationSummary | undefined }

/** The filters of `GET /conversations/summaries` that the page uses. */
export type SummaryFilter = {
  readonly status?: readonly ConversationSummary['status'][]
  readonly archived?: boolean
} & ListQuery

/** `isWhole`: there are no further rows at the server. Otherwise a row after the last one is read with its page. */
export function withChange(
  rows: readonly ConversationSummary[],
  { id, summary }: SummaryChange,
  { filter, isWhole }: { readonly filter: SummaryFilter; readonly isWhole: boolean },
): readonly ConversationSummary[] {
  const others = rows.filter((row) => row.id !== id)
  if (!summary || !matches(summary, filter)) return others
  const place = others.findIndex(({ updated_at }) => updated_at <= summary.updated_at)
  if (place !== -1) return others.toSpliced(place, 0, summary)
  // The last row belongs to a page that was read: the next page begins after it.
  const isLastRow = others.length < rows.length
  return isWhole || isLastRow ? [...others, summary] : others
}

function matches(summary: ConversationSummary, filter: SummaryFilter): boolean {
  const { status, archived, q, label, model, user_id } = filter
  const { title = '', preview = '', labels = [] } = summary
  const text = q?.toLowerCase()
  return (
    (status === undefined || status.includes(summary.status)) &&
    (archived === undefined || (summary.archived ?? false) === archived) &&
    (label === undefined || label.every((name) => labels.includes(name))) &&
    (model === undefined || summary.model === model) &&
    (user_id === undefined || summary.user_id === user_id) &&
    (text === undefined || title.toLowerCase().includes(text) || preview.toLowerCase().includes(text))
  )
}
