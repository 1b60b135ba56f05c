/** Two sets of limits combined. */
import { expect, test } from 'vitest'
import { limitsAbove, lowerLimits, tellBytes } from '../../src/shell/limit-values.ts'

test('the lower of both limits holds, and one alone as it is', () => {
  const server = { memoryBytes: 1000, processes: 50 }
  expect(lowerLimits(server)).toEqual(server)
  expect(lowerLimits(server, { memory_bytes: 2000, processes: 20, cpus: 1 })).toEqual({
    memoryBytes: 1000,
    processes: 20,
    cpus: 1,
  })
})

test('limits above those of the server are named', () => {
  expect(limitsAbove({ memoryBytes: 1000 }, { memory_bytes: 1001, processes: 9 })).toEqual([
    'memory_bytes (at most 1000)',
  ])
  expect(limitsAbove({}, { memory_bytes: 1001 })).toEqual([])
})

test.each([
  [0, '0 bytes'],
  [1023, '1023 bytes'],
  [1536, '1.5 KiB'],
  [64 * 1024 ** 2, '64 MiB'],
  [5000 * 1024 ** 4, '5000 TiB'],
])('%d bytes are formatted as %s', (bytes, text) => expect(tellBytes(bytes)).toBe(text))
