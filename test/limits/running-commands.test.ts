/** Which commands are ended at the disk limit. */
import { expect, test } from 'vitest'
import { RunningCommands } from '../../src/limits/running-commands.ts'

const MIB = 1024 ** 2
const EXCEEDED = { resource: 'disk', message: 'It wrote too much.' } as const

function setCommands(usedBytes: number) {
  const commands = new RunningCommands({
    limits: { diskBytes: 2 * MIB },
    ownProcesses: undefined,
    events: () => ({ memoryKills: 0, forksRefused: 0 }),
    usedDiskBytes: () => usedBytes,
  })
  const command = commands.add(new AbortController().signal)
  return { commands, command }
}

test('a command is not ended for what an earlier one wrote, and a measurement counted while it ran', () => {
  const measuredFrom = performance.now()
  const { commands, command } = setCommands(2 * MIB)
  const measured = { usedBytes: 9 * MIB, measuredFrom }
  expect(commands.stopWriters(measured, EXCEEDED), 'it waits for its turn').toBe(false)
  command.begin()
  expect(commands.stopWriters(measured, EXCEEDED)).toBe(false)
  const later = { usedBytes: 9 * MIB, measuredFrom: performance.now() }
  expect(commands.stopWriters(later, EXCEEDED), 'it deletes').toBe(false)
  expect(command.signal.aborted).toBe(false)
  expect(commands.stopWriters({ ...later, usedBytes: 11 * MIB }, EXCEEDED), 'it writes').toBe(true)
  expect(command.signal.aborted).toBe(true)
})
