/** How the benchmark compares two executables: the statistics, when a row is decided, and what is measured in which order. */
import { describe, expect, test } from 'vitest'
import { readAsked } from '../../bench/compare/compare.ts'
import { commitOf } from '../../bench/compare/executable-of.ts'
import type { Pair } from '../../bench/compare/ratio.ts'
import { judge, ratioOf } from '../../bench/compare/ratio.ts'
import type { Costs, Opened } from '../../bench/compare/rounds.ts'
import { compareInRounds, MAX_ROUNDS, MIN_ROUNDS, verdictOf } from '../../bench/compare/rounds.ts'

const pairsOf = (ratios: readonly number[]): Pair[] => ratios.map((ratio) => ({ own: 3 * ratio, other: 3 }))

describe('the ratio of rounds', () => {
  test('is their geometric mean, with the t interval of their logarithms', () => {
    const { ratio, low, high } = ratioOf(pairsOf([1, 2, 4]))
    expect(ratio).toBeCloseTo(2)
    // The logarithms 0, 1 and 2 to the base 2 have a standard error of 1 / √3; the quantile of 2 degrees of freedom is 4.303.
    expect(Math.log2(high)).toBeCloseTo(1 + 4.303 / Math.sqrt(3), 2)
    expect(Math.log2(low)).toBeCloseTo(1 - 4.303 / Math.sqrt(3), 2)
  })

  test('is the inverse when the sides are exchanged', () => {
    const pairs = pairsOf([0.8, 1.1, 1.3, 0.9])
    const there = ratioOf(pairs)
    const back = ratioOf(pairs.map(({ own, other }) => ({ own: other, other: own })))
    expect(back.ratio).toBeCloseTo(1 / there.ratio)
    expect(back.low).toBeCloseTo(1 / there.high)
  })

  test('does not depend on how costly a round was for both', () => {
    const disturbed = pairsOf([1, 1.1, 1.2]).map(({ own, other }, i) => ({ own: own * 5 ** i, other: other * 5 ** i }))
    expect(ratioOf(disturbed).ratio).toBeCloseTo(ratioOf(pairsOf([1, 1.1, 1.2])).ratio)
  })

  test('is refused when a round was too short to be measured', () => {
    expect(() => ratioOf([{ own: 1, other: 0 }, ...pairsOf([1])])).toThrow('too short')
    expect(() => ratioOf([{ own: Number.NaN, other: 1 }, ...pairsOf([1])])).toThrow('too short')
  })
})

test.each([
  ['worse', { low: 1.11, high: 1.5 }],
  ['undecided', { low: 1.09, high: 1.5 }],
  ['same', { low: 0.92, high: 1.09 }],
  ['undecided', { low: 0.9, high: 1.05 }],
  ['better', { low: 0.5, high: 0.9 }],
  ['undecided', { low: 0.5, high: 1.5 }],
] as const)('a row is %s when its whole interval is %o', (verdict, interval) => {
  expect(judge({ ratio: 1, ...interval })).toBe(verdict)
})

describe('rounds', () => {
  /** Sides that cost what the functions return, by number of measurement, and a list of what was done. */
  function sidesWith(costs: Record<'own' | 'other', (count: number) => Costs>) {
    const done: string[] = []
    const counts = { own: 0, other: 0 }
    const open = (side: 'own' | 'other') => (): Promise<Opened> => {
      done.push(`${side} starts`)
      return Promise.resolve({
        measure() {
          done.push(side)
          return Promise.resolve(costs[side](counts[side]++))
        },
        [Symbol.asyncDispose]() {
          done.push(`${side} ends`)
          return Promise.resolve()
        },
      })
    }
    return { sides: { own: open('own'), other: open('other') }, done }
  }

  async function rowsOf(costs: Parameters<typeof sidesWith>[0]): Promise<ReadonlyMap<string, readonly Pair[]>> {
    const compared = await compareInRounds(sidesWith(costs).sides)
    if ('leftOut' in compared) throw new Error(compared.leftOut)
    return compared.rows
  }

  test('measure each executable in turn, in processes of that round', async () => {
    const { sides, done } = sidesWith({ own: () => ({ a: 1 }), other: () => ({ a: 1 }) })
    await compareInRounds(sides)
    const round = (a: string, b: string) =>
      `other starts,own starts,${a},${b},${[a, b, b, a, a, b].join()},own ends,other ends`
    expect(done.join()).toBe([0, 1, 2, 3, 4].map((i) => (i % 2 ? round('own', 'other') : round('other', 'own'))).join())
  })

  test('end after the fifth when all rows are decided', async () => {
    const rows = await rowsOf({ own: () => ({ a: 1, b: 2, c: 1 }), other: () => ({ a: 1, b: 1, c: 2 }) })
    expect([...rows].map(([row, pairs]) => [row, pairs.length, verdictOf(pairs)])).toEqual([
      ['a', MIN_ROUNDS, 'same'],
      ['b', MIN_ROUNDS, 'worse'],
      ['c', MIN_ROUNDS, 'better'],
    ])
  })

  test('are added while one row is undecided', async () => {
    // Of the sixth round on it costs the same in each.
    const own = (count: number) => ({ a: 1, b: count < 20 ? 1 + (Math.floor(count / 4) % 2) / 3 : 1.2 })
    const rows = await rowsOf({ own, other: () => ({ a: 1, b: 1 }) })
    expect(rows.get('a')).toHaveLength(rows.get('b')!.length)
    expect(rows.get('b')!.length).toBeGreaterThan(MIN_ROUNDS)
    expect(rows.get('b')!.length).toBeLessThanOrEqual(MAX_ROUNDS)
  })

  test('are never more than the most, and the row stays undecided', async () => {
    const own = (count: number) => ({ a: 1 + (Math.floor(count / 4) % 2) })
    const pairs = (await rowsOf({ own, other: () => ({ a: 1.4 }) })).get('a')!
    expect([pairs.length, verdictOf(pairs)]).toEqual([MAX_ROUNDS, 'undecided'])
  })

  test('do not count the first measurement of a process, nor one that was disturbed', async () => {
    const own = (count: number) => ({ a: { 0: 100, 2: 50 }[count % 4] ?? 1 })
    const rows = await rowsOf({ own, other: () => ({ a: 1 }) })
    expect(rows.get('a')).toEqual(Array.from({ length: MIN_ROUNDS }, () => ({ own: 1, other: 1 })))
  })

  test('leave out what the other executable cannot serve, and stop both processes', async () => {
    const fail = () => {
      throw new Error('/x was answered with 404')
    }
    const { sides, done } = sidesWith({ own: () => ({ a: 1 }), other: fail })
    expect(await compareInRounds(sides)).toEqual({ leftOut: '/x was answered with 404' })
    expect(done).toEqual(['other starts', 'own starts', 'other', 'own ends', 'other ends'])
  })

  test('fail when the executable of the working tree fails', async () => {
    const fail = () => {
      throw new Error('/x was answered with 500')
    }
    const { sides } = sidesWith({ own: fail, other: () => ({ a: 1 }) })
    await expect(compareInRounds(sides)).rejects.toThrow('500')
  })
})

describe('the words after --compare', () => {
  test('are a commit and names of rows, both optional', () => {
    const baseline = readAsked([]).ref
    expect(baseline).toMatch(/^[0-9a-f]{40}$/)
    expect(readAsked(['HEAD~20', 'steps', 'deltas'])).toEqual({ ref: 'HEAD~20', names: ['steps', 'deltas'] })
    expect(readAsked(['steps'])).toEqual({ ref: baseline, names: ['steps'] })
    expect(readAsked(['HEAD']).names).toEqual(readAsked([]).names)
  })

  test('that name no row are refused with the names that there are', () => {
    expect(() => readAsked(['HEAD', 'nothing'])).toThrow(/no row nothing; there are steps, /)
  })

  test('that name no commit are refused', () => {
    expect(() => commitOf('no-such-commit')).toThrow('no commit no-such-commit')
  })
})
