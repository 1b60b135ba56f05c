/** The labels, models and users of conversations as filters, each with how many conversations have it. */
import type { ValueCounts } from '../../contract/values/page.ts'
import { count } from '../parts/amounts.ts'
import type { FilterName, ListQuery } from '../state/list-query.ts'
import { hasFilterText } from '../state/list-query.ts'
import { texts } from '../state/preferences.ts'
import { short } from '../text/visible.ts'

type Counts = {
  readonly by_label?: ValueCounts | undefined
  readonly by_model?: ValueCounts | undefined
  readonly by_user_id?: ValueCounts | undefined
}

type Props = {
  readonly counts: Counts
  readonly filter: ListQuery
  readonly set: (name: FilterName, value: string | undefined) => void
}

export function ValueFilters({ counts: { by_label, by_model, by_user_id }, filter, set }: Props) {
  const { label, model, user_id } = filter
  return (
    <>
      <ValueFilter name="label" counts={by_label} chosen={label?.[0]} set={set} />
      <ValueFilter name="model" counts={by_model} chosen={model} set={set} />
      <ValueFilter name="user" counts={by_user_id} chosen={user_id} set={set} />
    </>
  )
}

type OneProps = {
  readonly name: FilterName
  readonly counts: ValueCounts | undefined
  readonly chosen: string | undefined
  readonly set: (name: FilterName, value: string | undefined) => void
}

/** Is not there where it would change nothing. */
function ValueFilter({ name, counts = [], chosen, set }: OneProps) {
  const { anyValue, filterBy } = texts.value
  const rows = counts.filter(({ value }) => hasFilterText(name, value))
  if (chosen === undefined && rows.length < 2) return null
  const isKnown = chosen === undefined || rows.some(({ value }) => value === chosen)
  return (
    <select
      aria-label={filterBy[name]}
      value={chosen ?? ''}
      onChange={({ currentTarget: { value } }) => set(name, value === '' ? undefined : value)}
    >
      <option value="">{anyValue[name]}</option>
      {!isKnown && <option value={chosen}>{short(chosen, VALUE_CHARS)}</option>}
      {rows.map((row) => (
        <option key={row.value} value={row.value}>
          {short(row.value, VALUE_CHARS)} ({count(row.count)})
        </option>
      ))}
    </select>
  )
}

const VALUE_CHARS = 40
