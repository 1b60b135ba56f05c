/**
 * Bars of what days or hours have cost, each of parts, and the same as a table. They are elements: a library for charts draws on
 * a canvas, where no bar has a name, and the look does not follow the page.
 */
import type { UsageRow } from '../../contract/usage.ts'
import { language, texts } from '../state/preferences.ts'
import { cost } from './amounts.ts'

/** A row of each bucket and group. */
type Props = {
  readonly rows: readonly UsageRow[]
  /** The times at which the buckets begin, also those without rows, RFC 3339. */
  readonly starts: readonly string[]
  readonly isHourly: boolean
  /** The groups in the order of their parts, from below. */
  readonly groups: readonly CostGroup[]
  readonly label: string
}

export type CostGroup = {
  readonly key: string
  readonly name: string
  readonly costUsd: number
  /** None of its answers has a known cost. */
  readonly isUnknown: boolean
}

/** The rest has a key that no group has. */
export const keyOfRow = ({ group, rest }: UsageRow): string => (rest ? 'rest' : `=${group ?? ''}`)

/** The units of the picture, which is stretched. */
const [WIDTH, GAP, HEIGHT] = [10, 2, 100]

export function CostBars(props: Props) {
  const { rows, starts, groups, label } = props
  const byStart = Map.groupBy(rows, ({ start }) => start)
  const highestUsd = Math.max(0, ...starts.map((start) => sumOf(byStart.get(start))))
  const places = new Map(groups.map(({ key }, place) => [key, place]))
  const partsOf = (start: string) =>
    (byStart.get(start) ?? [])
      .map((row) => ({ place: places.get(keyOfRow(row)) ?? groups.length, share: row.cost_usd / (highestUsd || 1) }))
      .sort((a, b) => a.place - b.place)
  return (
    <>
      <p class="quiet scale number" aria-hidden="true">
        {cost(highestUsd)}
      </p>
      <svg
        class="cost-bars"
        role="img"
        aria-label={label}
        viewBox={`0 0 ${starts.length * WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
      >
        {starts.map((start, at) => {
          let top = HEIGHT
          return (
            <g key={start}>
              <title>{`${nameOf(start, props.isHourly)}: ${cost(sumOf(byStart.get(start)))}`}</title>
              {/* The whole height, where somebody points at it. */}
              <path d={`M${at * WIDTH} 0h${WIDTH}v${HEIGHT}h-${WIDTH}z`} fill="none" pointer-events="all" />
              {partsOf(start).map(({ place, share }) => {
                const height = share * HEIGHT
                top -= height
                return (
                  <rect
                    key={place}
                    class={`part-${place}`}
                    x={at * WIDTH + GAP / 2}
                    y={top}
                    width={WIDTH - GAP}
                    height={height}
                  />
                )
              })}
            </g>
          )
        })}
      </svg>
      <p class="quiet pair" aria-hidden="true">
        <span>{nameOf(starts[0], props.isHourly)}</span>
        <span>{nameOf(starts.at(-1), props.isHourly)}</span>
      </p>
      <CostTable {...props} byStart={byStart} />
    </>
  )
}

function CostTable({
  starts,
  groups,
  isHourly,
  label,
  byStart,
}: Props & { readonly byStart: ReadonlyMap<string, UsageRow[]> }) {
  const { asTable, since, total } = texts.value
  return (
    <details>
      <summary>{asTable}</summary>
      {/* Whoever has no mouse scrolls it with the arrows. */}
      <div class="scroll-x" tabIndex={0} role="region" aria-label={label}>
        <table class="amounts">
          <thead>
            <tr>
              <th scope="col">{since}</th>
              {groups.map(({ key, name }) => (
                <th key={key} scope="col">
                  {name}
                </th>
              ))}
              <th scope="col">{total}</th>
            </tr>
          </thead>
          <tbody>
            {starts.map((start) => {
              const costs = new Map(byStart.get(start)?.map((row) => [keyOfRow(row), row.cost_usd]))
              return (
                <tr key={start}>
                  <th scope="row">{nameOf(start, isHourly)}</th>
                  {groups.map(({ key }) => (
                    <td key={key}>{cost(costs.get(key) ?? 0)}</td>
                  ))}
                  <td>{cost(sumOf(byStart.get(start)))}</td>
                </tr>
              )
            })}
          </tbody>
        </table>
      </div>
    </details>
  )
}

const sumOf = (rows: readonly UsageRow[] = []): number => rows.reduce((sum, { cost_usd }) => sum + cost_usd, 0)

function nameOf(start: string | undefined, isHourly: boolean): string {
  if (start === undefined) return ''
  const time = new Date(start)
  return isHourly
    ? time.toLocaleTimeString(language.value, { hour: '2-digit', minute: '2-digit' })
    : time.toLocaleDateString(language.value, { day: 'numeric', month: 'short', year: 'numeric' })
}
