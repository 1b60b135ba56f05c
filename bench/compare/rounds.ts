/** Measures two executables in turn, for as many rounds as it takes to decide each row. */
import { median } from '../table.ts'
import type { Pair, Verdict } from './ratio.ts'
import { judge, ratioOf } from './ratio.ts'

/** What one piece of work cost, by row. */
export type Costs = Readonly<Record<string, number>>

/** A process that is ready to be measured again and again. */
export type Opened = AsyncDisposable & { readonly measure: () => Promise<Costs> }

export type Sides = { readonly own: () => Promise<Opened>; readonly other: () => Promise<Opened> }

export type Compared =
  | { readonly rows: ReadonlyMap<string, readonly Pair[]> }
  /** Why the other executable cannot do this. */
  | { readonly leftOut: string }

export const MIN_ROUNDS = 5
export const MAX_ROUNDS = 15

/** What takes longer does not work, milliseconds. */
const LIMIT_MS = 120_000

/** Rejects if the executable of the working tree fails. */
export async function compareInRounds(sides: Sides): Promise<Compared> {
  const rows = new Map<string, Pair[]>()
  try {
    for (let round = 0; round < MAX_ROUNDS && (round < MIN_ROUNDS || isUndecided(rows)); round++)
      for (const [row, pair] of await measureRound(sides, round)) rows.set(row, [...(rows.get(row) ?? []), pair])
    return { rows }
  } catch (error) {
    if (error instanceof OtherFailure) return { leftOut: error.message }
    throw error
  }
}

export const verdictOf = (pairs: readonly Pair[]): Verdict => judge(ratioOf(pairs))

const isUndecided = (rows: ReadonlyMap<string, readonly Pair[]>) =>
  rows.values().some((pairs) => verdictOf(pairs) === 'undecided')

class OtherFailure extends Error {}

/**
 * Each round starts both executables again, because a process can be slow by chance for as long as it lives. In a round
 * each is measured three times, in the order A B B A A B or B A A B B A: what gets steadily slower then affects both alike.
 */
async function measureRound(sides: Sides, round: number): Promise<Map<string, Pair>> {
  await using other = await attempted(sides.other)
  await using own = await limited(sides.own)
  const measured = { own: [] as Costs[], other: [] as Costs[] }
  // The first measurement of each warms it up.
  const [a, b] = round % 2 === 0 ? (['other', 'own'] as const) : (['own', 'other'] as const)
  for (const side of [a, b, a, b, b, a, a, b])
    measured[side].push(await (side === 'own' ? limited(own.measure) : attempted(other.measure)))
  const rows = Object.keys(measured.own[0]!) // it was measured
  return new Map(
    rows.map((row) => [row, { own: costOf(row, measured.own), other: costOf(row, measured.other) }] as const),
  )
}

/** The median, without the first one. */
const costOf = (row: string, all: readonly Costs[]): number => median(all.slice(1).map((one) => one[row] ?? Number.NaN))

async function attempted<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await limited(work)
  } catch (cause) {
    throw new OtherFailure(cause instanceof Error ? cause.message : String(cause), { cause })
  }
}

async function limited<T>(work: () => Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`it did not end within ${LIMIT_MS / 1000} s`)), LIMIT_MS)
  try {
    return await Promise.race([work(), promise])
  } finally {
    clearTimeout(timer)
  }
}
