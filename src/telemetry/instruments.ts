/**
 * Metric instruments, stored as plain numbers: updating costs almost nothing, and formatting happens only on a scrape.
 */

/** A sample of Prometheus: `suffix` is what a histogram's lines add to its name. */
export type Sample = {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
  readonly suffix?: '_bucket' | '_sum' | '_count'
}

export type Instrument = {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly samples: () => Sample[]
}

export type Counter = Instrument & { readonly add: (labels: readonly string[], amount?: number) => void }

export type Timer = Instrument & { readonly observe: (labels: readonly string[], ms: number) => void }

type Description = {
  readonly name: string
  readonly help: string
  readonly labels?: readonly string[]
  /** Maximum number of label sets. Further ones are counted as `other`: clients can choose any number of names. */
  readonly maxSeries?: number
}

const MAX_SERIES = 200
const OTHER = 'other'

export function createCounter(description: Description): Counter {
  const { name, help, labels: names = [] } = description
  const series = createSeries(description, () => ({ value: 0 }))
  return {
    name,
    help,
    type: 'counter',
    add: (labels, amount = 1) => void (series.of(labels).value += amount),
    samples() {
      // A counter without labels exists from the start, so that its first increase is visible as one.
      if (names.length === 0) series.of([])
      return series.all().map(({ labels, kept }) => ({ labels, value: kept.value }))
    },
  }
}

/** Takes milliseconds and reports seconds. `bounds` are in seconds, ascending. */
export function createTimer(description: Description & { readonly bounds: readonly number[] }): Timer {
  const { name, help, bounds, labels: names = [] } = description
  const series = createSeries(description, () => ({ sum: 0, counts: new Float64Array(bounds.length + 1) }))
  return {
    name,
    help,
    type: 'histogram',
    observe(labels, ms) {
      const seconds = ms / 1000
      const keptSeries = series.of(labels)
      let at = 0
      // oxlint-disable-next-line typescript/no-non-null-assertion -- the index is within bounds
      while (at < bounds.length && seconds > bounds[at]!) at++
      // oxlint-disable-next-line typescript/no-non-null-assertion -- one count for each bound, and one for what is above
      keptSeries.counts[at]!++
      keptSeries.sum += seconds
    },
    samples() {
      if (names.length === 0) series.of([])
      return series.all().flatMap(({ labels, kept }) => histogramSamples(labels, bounds, kept))
    },
  }
}

/** Makes a readout of values that are counted elsewhere: read with each scrape. */
export function createReadout(
  { name, help, type }: Pick<Instrument, 'name' | 'help' | 'type'>,
  read: () => number | Sample[],
): Instrument {
  const samples = () => {
    const now = read()
    return typeof now === 'number' ? [{ labels: {}, value: now }] : now
  }
  return { name, help, type, samples }
}

function createSeries<T>({ labels: names = [], maxSeries = MAX_SERIES }: Description, create: () => T) {
  const bySeries = new Map<string, { readonly values: readonly string[]; readonly series: T }>()
  const other = names.map(() => OTHER)

  function of(values: readonly string[]): T {
    const [first = ''] = values
    const key = values.length === 1 ? first : values.join('\n')
    const knownSeries = bySeries.get(key)
    if (knownSeries) return knownSeries.series
    if (bySeries.size >= maxSeries && values !== other) return of(other)
    const keptSeries = create()
    bySeries.set(key, { values, series: keptSeries })
    return keptSeries
  }

  return {
    of,
    all: () =>
      [...bySeries.values()].map(({ values, series: keptSeries }) => ({
        labels: Object.fromEntries(names.map((name, at) => [name, values[at] ?? ''])),
        kept: keptSeries,
      })),
  }
}

function histogramSamples(
  labels: Sample['labels'],
  bounds: readonly number[],
  { sum, counts }: { readonly sum: number; readonly counts: Float64Array },
): Sample[] {
  let count = 0
  const buckets = Array.from(counts, (own, at): Sample => {
    count += own
    return {
      suffix: '_bucket',
      labels: { ...labels, le: at < bounds.length ? String(bounds[at]) : '+Inf' },
      value: count,
    }
  })
  return [...buckets, { suffix: '_sum', labels, value: sum }, { suffix: '_count', labels, value: count }]
}
