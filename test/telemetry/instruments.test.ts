import { expect, test } from 'vitest'
import { createExposition } from '../../src/telemetry/exposition.ts'
import { createCounter, createReadout, createTimer } from '../../src/telemetry/instruments.ts'

/** Lines of the page that are about this instrument. */
async function linesOf(name: string, instrument: Parameters<typeof createExposition>[0][number]): Promise<string[]> {
  const { text } = await createExposition([instrument])
  return (await text()).split('\n').filter((line) => line.startsWith(name))
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
  const { text } = await createExposition([gauge])
  now = 7
  expect(await text()).toContain('# HELP g h\n# TYPE g gauge\ng 7\n')
})

test('the process tells of itself beside them', async () => {
  const { text, contentType } = await createExposition([])
  expect(contentType).toBe('text/plain; version=0.0.4; charset=utf-8')
  const page = await text()
  for (const name of ['process_cpu_seconds_total', 'process_resident_memory_bytes', 'nodejs_eventloop_lag_p99_seconds'])
    expect(page).toMatch(new RegExp(`^${name} `, 'm'))
})
