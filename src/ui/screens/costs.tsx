/** What answers of models have cost: by day, and by model, user or label; and the conversations that cost most. */
import { useState } from 'preact/hooks'
import type { UsageReport, UsageRow } from '../../contract/usage.ts'
import { cost, count } from '../parts/amounts.ts'
import { Blank } from '../parts/blank.tsx'
import type { CostGroup } from '../parts/cost-bars.tsx'
import { CostBars, keyOfRow } from '../parts/cost-bars.tsx'
import { WhenLoaded, useLoaded } from '../parts/loaded.tsx'
import { costsOf } from '../state/costs.ts'
import { minute } from '../parts/now.ts'
import { texts } from '../state/preferences.ts'
import { addressOf } from '../state/route.ts'
import { startsOf } from '../state/server-time.ts'
import { short, visible } from '../text/visible.ts'

const DAYS = [1, 7, 30, 90, 365] as const
const KINDS = ['model', 'user_id', 'label'] as const
type Kind = (typeof KINDS)[number]

/** More parts of a bar cannot be told apart; more conversations are in the list of conversations. */
const [GROUPS, CONVERSATIONS] = [5, 10]

export function Costs() {
  const { costs, costTime, costTimes, costBy, costGroups } = texts.value
  const [days, setDays] = useState<(typeof DAYS)[number]>(30)
  const [by, setBy] = useState<Kind>('model')
  const report = useLoaded(
    async (signal) => {
      const isHourly = days === 1
      const bucket = isHourly ? ('hour' as const) : ('day' as const)
      const [spending, conversations] = await Promise.all([
        costsOf(days, { by, bucket, limit: GROUPS }, signal),
        costsOf(days, { by: 'conversation', limit: CONVERSATIONS }, signal),
      ])
      return { spent: spending, conversations, isHourly, by }
    },
    [days, by],
    minute.value,
  )
  return (
    <section class="page">
      <h1>{costs}</h1>
      <div class="bar">
        <label class="option">
          {costTime}
          <select
            value={String(days)}
            onChange={({ currentTarget }) => setDays(DAYS.find((each) => String(each) === currentTarget.value) ?? 30)}
          >
            {DAYS.map((each) => (
              <option key={each} value={String(each)}>
                {costTimes[each]}
              </option>
            ))}
          </select>
        </label>
        <label class="option">
          {costBy}
          <select
            value={by}
            onChange={({ currentTarget }) => setBy(KINDS.find((each) => each === currentTarget.value) ?? 'model')}
          >
            {KINDS.map((each) => (
              <option key={each} value={each}>
                {costGroups[each]}
              </option>
            ))}
          </select>
        </label>
      </div>
      <WhenLoaded of={report} draw={(value) => <SpentCosts {...value} />} />
    </section>
  )
}

type SpentProps = {
  readonly spent: UsageReport
  readonly conversations: UsageReport
  readonly isHourly: boolean
  readonly by: Kind
}

function SpentCosts({ spent, conversations, isHourly, by }: SpentProps) {
  const { noCosts, answers, tokensIn, tokensOut, amount, unpriced, costGroups, costOf } = texts.value
  const { total, items } = spent
  if (total.answers === 0) return <Blank text={noCosts} />
  const groups = groupsOf(items, by)
  const sums = [
    [amount, cost(total.cost_usd)],
    [answers, count(total.answers)],
    [tokensIn, count(total.input_tokens)],
    [tokensOut, count(total.output_tokens)],
  ] as const
  return (
    <>
      <dl class="sums">
        {sums.map(([name, value]) => (
          <div key={name}>
            <dt class="quiet">{name}</dt>
            <dd class="lead bold number">{value}</dd>
          </div>
        ))}
      </dl>
      {total.unpriced > 0 && <p class="quiet">{unpriced(count(total.unpriced))}</p>}
      <h2>{costOf(costGroups[by])}</h2>
      <CostBars
        rows={items}
        starts={startsOf(spent, isHourly)}
        isHourly={isHourly}
        groups={groups}
        label={costOf(costGroups[by])}
      />
      <ul class="plain narrow">
        {groups.map(({ key, name, costUsd, isUnknown }, place) => (
          <li key={key} class="pair">
            <span>
              <span class={`sample part-${place}`} aria-hidden="true" /> {name}
            </span>
            <span class="number">{isUnknown ? '–' : cost(costUsd)}</span>
          </li>
        ))}
      </ul>
      <TopConversations rows={conversations.items} />
    </>
  )
}

function TopConversations({ rows }: { readonly rows: readonly UsageRow[] }) {
  const { mostExpensive, gone, rest } = texts.value
  const pricedRows = rows.filter(({ cost_usd }) => cost_usd > 0)
  if (pricedRows.length === 0) return null
  return (
    <>
      <h2>{mostExpensive}</h2>
      <ul class="plain narrow">
        {pricedRows.map((row) => {
          const { group = '', title } = row
          return (
            <li key={keyOfRow(row)} class="pair">
              {row.rest && <span class="quiet">{rest}</span>}
              {title !== undefined && <a href={addressOf('c', group)}>{short(title, 80)}</a>}
              {!row.rest && title === undefined && (
                <span class="quiet">
                  <code>{visible(group)}</code> {gone}
                </span>
              )}
              <span class="number">{cost(row.cost_usd)}</span>
            </li>
          )
        })}
      </ul>
    </>
  )
}

/** The one that costs most first, and the rest last. */
function groupsOf(rows: readonly UsageRow[], by: Kind): CostGroup[] {
  const { noGroup, rest } = texts.value
  return [...Map.groupBy(rows, keyOfRow)]
    .map(([key, all]) => {
      const group = all[0]?.group ?? ''
      const name = all[0]?.rest ? rest : group === '' ? noGroup[by] : short(group, 60)
      const isUnknown = all.every((row) => row.unpriced === row.answers)
      return { key, name, isUnknown, costUsd: all.reduce((sum, { cost_usd }) => sum + cost_usd, 0) }
    })
    .sort((a, b) => Number(a.key === 'rest') - Number(b.key === 'rest') || b.costUsd - a.costUsd)
}
