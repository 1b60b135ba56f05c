import { Writable } from 'node:stream'
import { expect, test } from 'vitest'
import { LogOutput } from '../../src/telemetry/log-output.ts'

const MIB = 'x'.repeat(1024 * 1024)

test('lines that nobody reads are dropped after 8 MiB, and their number is reported when there is room again', async () => {
  const written: string[] = []
  const pending: (() => void)[] = []
  const reader = new Writable({
    write: (chunk, _, done) => (written.push(String(chunk)), pending.push(done)),
  })
  const gaps: number[] = []
  const output = new LogOutput(reader, (dropped) => gaps.push(dropped))
  for (let line = 0; line < 100; line++) output.write(() => MIB)
  expect(reader.writableLength).toBe(9 * MIB.length)
  expect(gaps).toEqual([])
  for (let line = 0; line < 9; line++) {
    pending.shift()?.()
    await new Promise(setImmediate)
  }
  output.write(() => 'after')
  output.write(() => 'more')
  expect([gaps, written.length, written.at(-1)]).toEqual([[91], 10, 'after'])
})
