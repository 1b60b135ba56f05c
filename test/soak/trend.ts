/** Decides whether a series of measurements rises. */

export type Trend = {
  /** What the line through the measurements rises by, from the first to the last of them. */
  readonly rise: number
  /** Twice the standard error of `rise`: the line rises by this much through noise alone, in one series of twenty. */
  readonly noise: number
}

/** The line through measurements at equal distances, by the least squares. Needs at least three of them. */
export function trendOf(values: readonly number[]): Trend {
  if (values.length < 3) throw new Error(`a trend needs at least 3 measurements, and there are ${values.length}`)
  const places = values.map((_, place) => place)
  const [meanPlace, mean] = [meanOf(places), meanOf(values)]
  const spread = sum(places.map((place) => (place - meanPlace) ** 2))
  const slope = sum(values.map((value, place) => (place - meanPlace) * (value - mean))) / spread
  const rest = sum(values.map((value, place) => (value - mean - slope * (place - meanPlace)) ** 2))
  const error = Math.sqrt(rest / (values.length - 2) / spread)
  const steps = values.length - 1
  return { rise: slope * steps, noise: 2 * error * steps }
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)
const meanOf = (values: readonly number[]): number => sum(values) / values.length
