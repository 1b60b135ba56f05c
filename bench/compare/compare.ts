/**
 * `npm run bench -- --compare [REF] [row…]`: drives the executables of another commit and of the working tree in turn, and
 * prints what the working tree costs as a ratio. Without REF it is the commit that `bench/baseline` names.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ModelProcess } from '../model-process.ts'
import { startModel } from '../model-process.ts'
import { median } from '../table.ts'
import { commitOf, executableOf, executableOfWorkingTree } from './executable-of.ts'
import type { Pair, Verdict } from './ratio.ts'
import { ratioOf } from './ratio.ts'
import type { Compared } from './rounds.ts'
import { compareInRounds, verdictOf } from './rounds.ts'
import { COMPARISONS } from './rows.ts'

const BASELINE = join(import.meta.dirname, '../baseline')

export type Asked = { readonly ref: string; readonly names: readonly string[] }

/** The first word is a commit unless it is the name of rows. */
export function readAsked(words: readonly string[]): Asked {
  const isRef = words[0] !== undefined && !(words[0] in COMPARISONS)
  const names = isRef ? words.slice(1) : words
  const unknown = names.filter((name) => !(name in COMPARISONS))
  if (unknown.length > 0)
    throw new Error(`There is no row ${unknown.join(', ')}; there are ${Object.keys(COMPARISONS).join(', ')}.`)
  const ref = isRef ? words[0]! : readFileSync(BASELINE, 'utf8').trim()
  return { ref, names: names.length > 0 ? names : Object.keys(COMPARISONS) }
}

/** Prints the table row by row, and returns whether no row became worse. */
export async function compare({ ref, names }: Asked): Promise<boolean> {
  const commit = commitOf(ref)
  const executables = { own: executableOfWorkingTree(), other: executableOf(commit) }
  console.log(`| | ${commit.slice(0, 8)} | working tree | ratio | 95 % interval | |\n|---|---|---|---|---|---|`)
  const verdicts = new Map<string, Verdict>()
  await using model = await startModel()
  for (const name of names)
    for (const [row, verdict] of tell(name, await compareRows(name, executables, model))) verdicts.set(row, verdict)
  const rowsWith = (wanted: Verdict) => [...verdicts].filter(([, verdict]) => verdict === wanted).map(([row]) => row)
  for (const row of rowsWith('undecided')) console.error(`Not decided, compare again on a quiet machine: ${row}`)
  for (const row of rowsWith('worse')) console.error(`More than 10 % worse: ${row}`)
  return rowsWith('worse').length === 0
}

type Executables = { readonly own: string; readonly other: string }

const compareRows = (name: string, { own, other }: Executables, model: ModelProcess): Promise<Compared> => {
  const start = COMPARISONS[name]! // its name was checked
  return compareInRounds({ own: () => start(own, model), other: () => start(other, model) })
}

const WORDS: Readonly<Record<Verdict, string>> = {
  same: 'within 10 %',
  worse: '**worse**',
  better: 'better',
  undecided: 'undecided',
}

function tell(name: string, compared: Compared): Map<string, Verdict> {
  if ('leftOut' in compared) {
    console.log(`| ${name} | – | – | – | – | left out, the older executable cannot serve it: ${compared.leftOut} |`)
    return new Map()
  }
  for (const [row, pairs] of compared.rows) console.log(lineOf(row, pairs))
  return new Map([...compared.rows].map(([row, pairs]) => [row, verdictOf(pairs)]))
}

function lineOf(row: string, pairs: readonly Pair[]): string {
  const { ratio, low, high } = ratioOf(pairs)
  const middle = (side: keyof Pair) => median(pairs.map((pair) => pair[side])).toPrecision(3)
  const verdict = `${WORDS[verdictOf(pairs)]}, ${pairs.length} rounds`
  const interval = `${low.toFixed(2)}–${high.toFixed(2)}`
  return `| ${row} | ${middle('other')} | ${middle('own')} | ${ratio.toFixed(2)} | ${interval} | ${verdict} |`
}
