import { expect, test } from 'vitest'
import { createExposition } from '../../src/telemetry/exposition.ts'
import { createCounter, createReadout, createTimer } from '../../src/telemetry/instruments.ts'

/** Lines of the page that are about this instrument. */
async function linesOf(name: string, instrument: Parameters<typeof createExposition>[0][number]): Promise<string[]> {
  const { text } = createExposition([instrument])
  return text()
    .split('\n')
    .filter((line) => line.startsWith(name))
}

test('a counter without labels is there before it was first added to', async () => {
  const counter = createCounter({ name: 'c_total', help: 'h' })
  expect(await linesOf('c_total', counter)).toEqual(['c_total 0'])
  counter.add([])
  counter.add([], 2)
  expect(await linesOf('c_total', counter)).toEqual(['c_total 3'])
})

test('label values are kept apart and written so that nothing can break out of them', async () => {
  const counter = createCounter({ name: 'c_total', help: 'h', labels: ['a', 'b'] })
  counter.add(['x', 'y'])
  counter.add(['"\n\\', ''])
  expect(await linesOf('c_total', counter)).toEqual(['c_total{a="x",b="y"} 1', 'c_total{a="\\"\\n\\\\",b=""} 1'])
})

test('label values that keep coming are counted together, so that their number stays bounded', async () => {
  const counter = createCounter({ name: 'c_total', help: 'h', labels: ['model'], maxSeries: 2 })
  for (const model of ['a', 'b', 'c', 'd', 'a']) counter.add([model])
  expect(await linesOf('c_total', counter)).toEqual([
    'c_total{model="a"} 2',
    'c_total{model="b"} 1',
    'c_total{model="other"} 2',
  ])
})

test('a timer takes milliseconds and tells seconds, in buckets that each hold all that is below', async () => {
  const timer = createTimer({ name: 't', help: 'h', bounds: [0.001, 1] })
  for (const ms of [0.5, 1, 500, 5000]) timer.observe([], ms)
  expect(await linesOf('t', timer)).toEqual([
    't_bucket{le="0.001"} 2',
    't_bucket{le="1"} 3',
    't_bucket{le="+Inf"} 4',
    't_sum 5.5015',
    't_count 4',
  ])
})

test('a gauge is read when somebody looks', async () => {
  let now = 1
  const gauge = createReadout({ name: 'g', help: 'h', type: 'gauge' }, () => now)
  const { text } = createExposition([gauge])
  now = 7
  expect(text()).toContain('# HELP g h\n# TYPE g gauge\ng 7\n')
})

/** Dashboards for Node know these names. */
const PROCESS_METRICS = `process_cpu_user_seconds_total process_cpu_system_seconds_total process_cpu_seconds_total
  process_start_time_seconds process_resident_memory_bytes process_virtual_memory_bytes process_heap_bytes
  process_open_fds process_max_fds nodejs_eventloop_lag_seconds nodejs_eventloop_lag_min_seconds
  nodejs_eventloop_lag_max_seconds nodejs_eventloop_lag_mean_seconds nodejs_eventloop_lag_stddev_seconds
  nodejs_eventloop_lag_p50_seconds nodejs_eventloop_lag_p90_seconds nodejs_eventloop_lag_p99_seconds
  nodejs_active_resources nodejs_active_resources_total nodejs_active_handles nodejs_active_handles_total
  nodejs_active_requests nodejs_active_requests_total nodejs_heap_size_total_bytes nodejs_heap_size_used_bytes
  nodejs_external_memory_bytes nodejs_heap_space_size_total_bytes nodejs_heap_space_size_used_bytes
  nodejs_heap_space_size_available_bytes nodejs_version_info nodejs_gc_duration_seconds`.split(/\s+/)

test('the process reports its own metrics, too', async () => {
  const { text, contentType } = createExposition([])
  expect(contentType).toBe('text/plain; version=0.0.4; charset=utf-8')
  const page = text()
  expect(Array.from(page.matchAll(/^# TYPE (\w+)/gm), ([, name]) => name)).toEqual(PROCESS_METRICS)
  // A line of the text format: a name, labels or none, and a number.
  const lines = page.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  expect(lines.filter((line) => !/^\w+(\{\w+="[^"]*"(,\w+="[^"]*")*\})? (-?[\d.e+-]+|Nan|\+Inf)$/.test(line))).toEqual(
    [],
  )
  const valueOf = (name: string) => Number(new RegExp(`^${name} (.*)`, 'm').exec(page)?.[1])
  expect(valueOf('process_resident_memory_bytes')).toBeGreaterThan(10_000_000)
  expect(valueOf('process_open_fds')).toBeGreaterThan(2)
  expect(valueOf('process_max_fds')).toBeGreaterThan(2)
})

test('every garbage collection is counted', async () => {
  const { text } = createExposition([])
  const { setFlagsFromString } = await import('node:v8')
  setFlagsFromString('--expose-gc')
  const collect = (await import('node:vm')).runInNewContext('gc') as () => void
  for (let i = 0; i < 3; i++) collect()
  const count = () => Number(/^nodejs_gc_duration_seconds_count\{kind="major"\} (\d+)/m.exec(text())?.[1])
  await expect.poll(count).toBeGreaterThanOrEqual(3)
  expect(text()).toContain('nodejs_gc_duration_seconds_bucket{le="0.001",kind="major"}')
})
