/** Metrics of the process, with the names that dashboards for Node know from `prom-client`. */
import { readFileSync, readdirSync } from 'node:fs'
import type { PerformanceEntry } from 'node:perf_hooks'
import { PerformanceObserver, constants, monitorEventLoopDelay } from 'node:perf_hooks'
import { getHeapSpaceStatistics } from 'node:v8'
import type { Instrument, Sample } from './instruments.ts'
import { createReadout, createTimer } from './instruments.ts'

/** Measurements over time start with this call. */
export function createProcessInstruments(): Instrument[] {
  return [
    ...cpu(),
    gauge('process_start_time_seconds', 'Start time of the process since unix epoch in seconds.', startTime()),
    ...memory(),
    ...descriptors(),
    ...eventLoopLag(),
    ...active(),
    ...heap(),
    ...heapSpaces(),
    version(),
    garbageCollection(),
  ]
}

const gauge = (name: string, help: string, read: (() => number | Sample[]) | number) =>
  createReadout({ name, help, type: 'gauge' }, typeof read === 'number' ? () => read : read)

function cpu(): Instrument[] {
  const start = process.cpuUsage()
  const counter = (name: string, help: string, read: (usage: NodeJS.CpuUsage) => number) =>
    createReadout({ name, help, type: 'counter' }, () => read(process.cpuUsage(start)) / 1e6)
  return [
    counter('process_cpu_user_seconds_total', 'Total user CPU time spent in seconds.', ({ user }) => user),
    counter('process_cpu_system_seconds_total', 'Total system CPU time spent in seconds.', ({ system }) => system),
    counter(
      'process_cpu_seconds_total',
      'Total user and system CPU time spent in seconds.',
      ({ user, system }) => user + system,
    ),
  ]
}

const startTime = () => Math.round(Date.now() / 1000 - process.uptime())

function memory(): Instrument[] {
  if (process.platform !== 'linux')
    return [gauge('process_resident_memory_bytes', 'Resident memory size in bytes.', () => process.memoryUsage.rss())]
  const bytes = (field: string) => () => {
    // oxlint-disable-next-line regexp/built -- the file is of Linux
    const kibibytes = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(readFileSync('/proc/self/status', 'latin1'))?.[1]
    return Number(kibibytes) * 1024
  }
  return [
    gauge('process_resident_memory_bytes', 'Resident memory size in bytes.', bytes('VmRSS')),
    gauge('process_virtual_memory_bytes', 'Virtual memory size in bytes.', bytes('VmSize')),
    gauge('process_heap_bytes', 'Process heap size in bytes.', bytes('VmData')),
  ]
}

function descriptors(): Instrument[] {
  if (process.platform !== 'linux') return []
  const limit = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1]
  return [
    // Exclude the descriptor that reads the directory.
    gauge('process_open_fds', 'Number of open file descriptors.', () => readdirSync('/proc/self/fd').length - 1),
    gauge('process_max_fds', 'Maximum number of open file descriptors.', Number(limit)),
  ]
}

function eventLoopLag(): Instrument[] {
  const histogram = monitorEventLoopDelay({ resolution: 10 })
  histogram.enable()
  let lag = 0
  // This instrument is read first: it takes the values of the others, and begins the next interval.
  let seenDelays = { min: 0, max: 0, mean: 0, stddev: 0, p50: 0, p90: 0, p99: 0 }
  const look = () => {
    const { min, max, mean, stddev } = histogram
    const [p50 = 0, p90 = 0, p99 = 0] = [50, 90, 99].map((part) => histogram.percentile(part))
    seenDelays = { min, max, mean, stddev, p50, p90, p99 }
    histogram.reset()
    const askedAt = process.hrtime.bigint()
    setImmediate(() => (lag = Number(process.hrtime.bigint() - askedAt) / 1e9))
    return lag
  }
  const part = (name: keyof typeof seenDelays, help: string) =>
    gauge(`nodejs_eventloop_lag_${name}_seconds`, help, () => seenDelays[name] / 1e9)
  return [
    gauge('nodejs_eventloop_lag_seconds', 'Lag of event loop in seconds.', look),
    part('min', 'The minimum recorded event loop delay.'),
    part('max', 'The maximum recorded event loop delay.'),
    part('mean', 'The mean of the recorded event loop delays.'),
    part('stddev', 'The standard deviation of the recorded event loop delays.'),
    part('p50', 'The 50th percentile of the recorded event loop delays.'),
    part('p90', 'The 90th percentile of the recorded event loop delays.'),
    part('p99', 'The 99th percentile of the recorded event loop delays.'),
  ]
}

/** Undocumented in Node, and so not in its types: the objects behind `getActiveResourcesInfo`. */
type Internals = { readonly _getActiveHandles: () => object[]; readonly _getActiveRequests: () => object[] }

function active(): Instrument[] {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- see the type
  const internals = process as unknown as Internals
  const kinds = [
    [
      'resources',
      'resources that are currently keeping the event loop alive',
      'async resource type',
      'active resources',
    ],
    ['handles', 'libuv handles', 'handle type. Every handle type is C++ class name', 'active handles'],
    ['requests', 'libuv requests', 'request type. Every request type is C++ class name', 'active requests'],
  ] as const
  const read = {
    resources: () => process.getActiveResourcesInfo(),
    handles: () => internals._getActiveHandles().map(nameOf),
    requests: () => internals._getActiveRequests().map(nameOf),
  }
  return kinds.flatMap(([kind, what, by, total]) => [
    gauge(
      `nodejs_active_${kind}`,
      kind === 'resources'
        ? `Number of active ${what}, grouped by ${by}.`
        : `Number of active ${what} grouped by ${by}.`,
      () => countEach(read[kind]()),
    ),
    gauge(`nodejs_active_${kind}_total`, `Total number of ${total}.`, () => read[kind]().length),
  ])
}

const nameOf = (value: object) => value.constructor.name

function countEach(names: readonly string[]): Sample[] {
  return [...Map.groupBy(names, (type) => type)].map(([type, same]) => ({ labels: { type }, value: same.length }))
}

function heap(): Instrument[] {
  return [
    gauge(
      'nodejs_heap_size_total_bytes',
      'Process heap size from Node.js in bytes.',
      () => process.memoryUsage().heapTotal,
    ),
    gauge(
      'nodejs_heap_size_used_bytes',
      'Process heap size used from Node.js in bytes.',
      () => process.memoryUsage().heapUsed,
    ),
    gauge(
      'nodejs_external_memory_bytes',
      'Node.js external memory size in bytes.',
      () => process.memoryUsage().external,
    ),
  ]
}

function heapSpaces(): Instrument[] {
  const fields = { total: 'space_size', used: 'space_used_size', available: 'space_available_size' } as const
  return Object.entries(fields).map(([what, field]) =>
    gauge(`nodejs_heap_space_size_${what}_bytes`, `Process heap space size ${what} from Node.js in bytes.`, () =>
      getHeapSpaceStatistics().map((space) => ({
        labels: { space: space.space_name.slice(0, space.space_name.indexOf('_space')) },
        value: space[field],
      })),
    ),
  )
}

function version(): Instrument {
  const { version: text } = process
  const [major = '', minor = '', patch = ''] = text.slice(1).split('.')
  const labels = { version: text, major, minor, patch }
  return gauge('nodejs_version_info', 'Node.js version info.', () => [{ labels, value: 1 }])
}

const GC_KINDS: Readonly<Record<number, string>> = {
  [constants.NODE_PERFORMANCE_GC_MAJOR]: 'major',
  [constants.NODE_PERFORMANCE_GC_MINOR]: 'minor',
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: 'incremental',
  [constants.NODE_PERFORMANCE_GC_WEAKCB]: 'weakcb',
}

function garbageCollection(): Instrument {
  const timer = createTimer({
    name: 'nodejs_gc_duration_seconds',
    help: 'Garbage collection duration by kind, one of major, minor, incremental or weakcb.',
    labels: ['kind'],
    bounds: [0.001, 0.01, 0.1, 1, 2, 5],
  })
  new PerformanceObserver((list) => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Node gives entries of this type a detail; the types know of none
    for (const entry of list.getEntries() as (PerformanceEntry & { readonly detail: { readonly kind: number } })[])
      timer.observe([GC_KINDS[entry.detail.kind] ?? 'other'], entry.duration)
  }).observe({ entryTypes: ['gc'] })
  return { ...timer, samples: () => timer.samples().map(boundFirst) }
}

/** Puts `le` first, as it always was on the page. */
function boundFirst({ labels: { le, ...labels }, ...sample }: Sample): Sample {
  return { ...sample, labels: le === undefined ? labels : { le, ...labels } }
}
