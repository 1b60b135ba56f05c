/** What two executables cost, as a ratio with its interval, and what that says about a row. */

/** What a row cost in one round, measured in turn: of the working tree, and of the other commit. Above zero, in any unit. */
export type Pair = { readonly own: number; readonly other: number }

export type Ratio = { readonly ratio: number; readonly low: number; readonly high: number }

export type Verdict = 'same' | 'worse' | 'better' | 'undecided'

/** A difference that matters. */
const LIMIT = 1.1

/** 97.5 % quantiles of Student's t distribution, from 1 degree of freedom. */
const T = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12, 2.11,
  2.101, 2.093, 2.086,
]

/**
 * Returns the geometric mean of own / other over the rounds, and its 95 % interval: the t interval of the mean of the
 * logarithms. Each round counts once, because what disturbs the machine affects both halves of a round. Logarithms make
 * twice as slow and twice as fast equally far from 1.
 */
export function ratioOf(pairs: readonly Pair[]): Ratio {
  const fault = pairs.find(({ own, other }) => !(own > 0 && other > 0))
  if (fault) throw new Error(`A round took ${fault.own} and ${fault.other}: it is too short to be measured.`)
  const logs = pairs.map(({ own, other }) => Math.log(own / other))
  const mean = logs.reduce((sum, log) => sum + log, 0) / logs.length
  const variance = logs.reduce((sum, log) => sum + (log - mean) ** 2, 0) / (logs.length - 1)
  const quantile = T[logs.length - 2]
  if (quantile === undefined) throw new Error(`The interval of ${logs.length} rounds is not known; 2 to 21 are.`)
  const reach = quantile * Math.sqrt(variance / logs.length)
  return { ratio: Math.exp(mean), low: Math.exp(mean - reach), high: Math.exp(mean + reach) }
}

/** The whole interval says it; while it is on both sides of a limit, the row is undecided. `better` costs less. */
export function judge({ low, high }: Ratio): Verdict {
  if (low > LIMIT) return 'worse'
  if (high < 1 / LIMIT) return 'better'
  return low >= 1 / LIMIT && high <= LIMIT ? 'same' : 'undecided'
}
