import { expect, test } from 'vitest'
import type { CommandTaskResult } from '../../../src/contract/values/task.ts'
import type { JobEnd, RunTaskCommand } from '../../../src/conversations/tasks/background-jobs.ts'
import { BackgroundJobs } from '../../../src/conversations/tasks/background-jobs.ts'

const command = { type: 'Command', command: 'true', timeout: 5 } as const
const result: CommandTaskResult = {
  type: 'Command',
  exit_code: 0,
  stdout: '',
  stderr: '',
  cwd: '/',
  execution_time: 0,
  timed_out: false,
  truncated: false,
}

function setJobs(runCommand: RunTaskCommand, onEnd: (end: JobEnd) => Promise<void> = async () => {}) {
  const ends: JobEnd[] = []
  const jobs = new BackgroundJobs({
    runCommand,
    onTick: () => {},
    onEnd: async (_, end) => {
      ends.push(end)
      await onEnd(end)
    },
  })
  return { jobs, ends }
}

/** Runs until its signal ends it. */
const untilEnded: RunTaskCommand = async (_, { signal }) => {
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
  return { ...result, exit_code: 143 }
}

test('a stopped job does not report its end; the caller that stopped it gets the result so far', async () => {
  const { jobs, ends } = setJobs(untilEnded)
  jobs.start('a', command)
  jobs.start('b', command)
  expect(await jobs.stop('a')).toMatchObject({ isOver: false, end: { result: { exit_code: 143 } } })
  expect(await jobs.stop('a')).toBeUndefined()
  await jobs.stopAll()
  expect(await jobs.stop('b')).toBeUndefined()
  expect(ends).toEqual([])
})

test('a job that has ended keeps its outcome, even if it is stopped before the outcome is stored', async () => {
  const stored = Promise.withResolvers<void>()
  const { jobs, ends } = setJobs(
    async () => result,
    () => stored.promise,
  )
  jobs.start('a', command)
  await expect.poll(() => ends).toEqual([{ status: 'completed', result }])
  expect(await jobs.stop('a')).toEqual({ isOver: true, end: { status: 'completed', result } })
  stored.resolve()
  expect(ends).toHaveLength(1)
})

test.each([
  ['a non-zero exit is an answer like any other', { exit_code: 1 }, { status: 'completed' }],
  [
    'a timeout is an error',
    { exit_code: 143, timed_out: true },
    { status: 'error', message: expect.stringContaining('5 s') },
  ],
  ['a command that was not started is an error', { exit_code: null }, { status: 'error' }],
] as const)('%s', async (_, came, expected) => {
  const { jobs, ends } = setJobs(async () => ({ ...result, ...came }))
  jobs.start('a', command)
  await expect.poll(() => ends).toMatchObject([{ ...expected, result: came }])
})

test('without an available shell the job ends', async () => {
  const { jobs, ends } = setJobs(async () => {
    throw new Error('no shell')
  })
  jobs.start('a', command)
  await expect.poll(() => ends).toEqual([{ status: 'error', message: 'no shell' }])
})
