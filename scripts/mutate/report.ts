/** What `npm run mutate` prints at its end: a table of the folders, and all mutants that no test noticed. */
import type { Verdict } from './judge.ts'

export type Judged = Verdict & {
  readonly id: string
  /** The part of the core. */
  readonly part: string
  readonly file: string
  readonly line: number
  readonly before: string
  readonly after: string
  /** The tests that were tried, in the state they were in. */
  readonly against: string
  readonly ms: number
}

/** A mutant that does what the code does, by the texts of its lines, which stay when others move. */
export type Equivalent = {
  readonly file: string
  readonly before: string
  readonly after: string
  readonly reason: string
}

const isNoticed = ({ verdict }: Verdict): boolean => verdict === 'caught' || verdict === 'stuck'

function isEquivalent({ file, before, after }: Omit<Equivalent, 'reason'>, all: readonly Equivalent[]): boolean {
  return all.some((one) => one.file === file && one.before === before && one.after === after)
}

/** The share of the mutants that were noticed, from 0 to 1. Those called equivalent count as not noticed. */
export function noticedShare(judged: readonly Judged[]): number {
  return judged.length === 0 ? 0 : judged.filter(isNoticed).length / judged.length
}

export function report(judged: readonly Judged[], equivalents: readonly Equivalent[]): string {
  const rows = [...Map.groupBy(judged, ({ part }) => part)].map(([part, all]) => row(part, all, equivalents))
  const survivors = judged.filter((one) => !isNoticed(one) && !isEquivalent(one, equivalents))
  const lines = survivors.map(
    ({ file, line, verdict, before, after }) =>
      `${file}:${line}${verdict === 'unreached' ? ' (no test reaches it)' : ''}\n  - ${before}\n  + ${after}`,
  )
  return [TITLE, RULE, ...rows, row('all', judged, equivalents), '', ...lines].join('\n')
}

const TITLE = '| part | mutants | caught | stuck | survived | equivalent | no test reaches | noticed |'
const RULE = '|---|---|---|---|---|---|---|---|'

function row(part: string, judged: readonly Judged[], equivalents: readonly Equivalent[]): string {
  const same = judged.filter((one) => !isNoticed(one) && isEquivalent(one, equivalents))
  const count = (verdict: Verdict['verdict']): number =>
    judged.filter((one) => one.verdict === verdict && !same.includes(one)).length
  const cells = [count('caught'), count('stuck'), count('survived'), same.length, count('unreached')]
  return `| ${part} | ${judged.length} | ${cells.join(' | ')} | ${(100 * noticedShare(judged)).toFixed(0)} % |`
}
