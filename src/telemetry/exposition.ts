/** The metrics as Prometheus reads them. The only file that knows prom-client, which is loaded when somebody first asks. */
import type { Metric, Registry } from 'prom-client'
import type { Instrument } from './instruments.ts'

export type Exposition = { readonly contentType: string; readonly text: () => Promise<string> }

/** Together with the metrics of the process: CPU, memory, garbage collection, and the event loop's lag from then on. */
export async function createExposition(instruments: readonly Instrument[]): Promise<Exposition> {
  const { Registry, collectDefaultMetrics } = await import('prom-client')
  const registry: Registry = new Registry()
  for (const instrument of instruments) registry.registerMetric(asMetric(instrument))
  collectDefaultMetrics({ register: registry })
  return { contentType: registry.contentType, text: () => registry.metrics() }
}

/** What a registry asks of a metric, and all that it asks: the classes of the package would count a second time. */
function asMetric({ name, help, type, samples }: Instrument): Metric {
  const get = async () => {
    const values = samples().map(({ labels, value, suffix = '' }) => ({ metricName: name + suffix, labels, value }))
    return { name, help, type, values, aggregator: 'sum' }
  }
  return { name, help, type, get } as unknown as Metric
}
