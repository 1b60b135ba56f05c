/** The resource limits of one conversation as numbers, and how to combine two sets. */
import type { RequestedLimits } from '../contract/limits/resource-limits.ts'
import { withoutUndefined } from '../lib/without-undefined.ts'

/** An absent resource is not limited. */
export type LimitValues = {
  readonly memoryBytes?: number
  /** Threads count as processes, as in the kernel. */
  readonly processes?: number
  /** Cores. */
  readonly cpus?: number
  readonly diskBytes?: number
}

/** The limit that a command reached. */
export type ExceededLimit = { readonly resource: 'memory' | 'processes' | 'disk'; readonly message: string }

/** Returns the lower limit of each resource. */
export function lowerLimits(server: LimitValues, requestedLimits: RequestedLimits = {}): LimitValues {
  return withoutUndefined({
    memoryBytes: lower(server.memoryBytes, requestedLimits.memory_bytes),
    processes: lower(server.processes, requestedLimits.processes),
    cpus: lower(server.cpus, requestedLimits.cpus),
    diskBytes: lower(server.diskBytes, requestedLimits.disk_bytes),
  })
}

/** Names the requested limits above those of the server. */
export function limitsAbove(server: LimitValues, requestedLimits: RequestedLimits): string[] {
  const pairs = [
    ['memory_bytes', requestedLimits.memory_bytes, server.memoryBytes],
    ['processes', requestedLimits.processes, server.processes],
    ['cpus', requestedLimits.cpus, server.cpus],
    ['disk_bytes', requestedLimits.disk_bytes, server.diskBytes],
  ] as const
  return pairs.flatMap(([name, askedLimit, limit]) =>
    askedLimit !== undefined && limit !== undefined && askedLimit > limit ? [`${name} (at most ${limit})`] : [],
  )
}

/** Formats bytes in the unit with few digits. */
export function tellBytes(bytes: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB']
  const power = bytes < 1024 ? 0 : Math.min(Math.floor(Math.log2(bytes) / 10), units.length - 1)
  const value = bytes / 1024 ** power
  return `${Number.isInteger(value) ? value : value.toFixed(1)} ${units[power]}`
}

function lower(a: number | undefined, b: number | undefined): number | undefined {
  if (a === undefined) return b
  return b === undefined ? a : Math.min(a, b)
}
