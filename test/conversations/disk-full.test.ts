import { expect, test } from 'vitest'
import { Problem } from '../../src/contract/problem.ts'
import type { EventStore, StoredLog } from '../../src/events/event-store.ts'
import { createJsonlStore } from '../../src/events/jsonl-store.ts'
import { call, endOf, eventsOf, gate, only, setBench, userText } from './fixtures.ts'
import type { BenchOptions } from './fixtures.ts'

/** A bench on a store of real files that can be out of room. */
async function setFullBench(options: BenchOptions) {
  const disk = { isFull: false, directory: '' }
  const store = () => createJsonlStore({ directory: disk.directory })
  let inner: EventStore | undefined
  const guard = (log: StoredLog): StoredLog => {
    const append = log.append.bind(log)
    log.append = (...args) =>
      disk.isFull ? Promise.reject(new Problem('storage_full', 'There is no room to store this.')) : append(...args)
    return log
  }
  const deps = {
    store: {
      create: async (id) => guard(await (inner ??= store()).create(id)),
      copy: async (...args) => guard(await (inner ??= store()).copy(...args)),
      open: async (id) => {
        const opened = await (inner ??= store()).open(id)
        return { ...opened, log: guard(opened.log) }
      },
      delete: (id) => (inner ??= store()).delete(id),
    } satisfies EventStore,
  }
  const bench = await setBench({ ...options, deps })
  disk.directory = `${bench.dataDir}/sessions`
  return { bench, disk }
}

test('a run whose events find no room ends, says so once there is room, and its tool does not run twice', async () => {
  const slow = gate('Slow')
  const { bench, disk } = await setFullBench({
    tools: [slow.tool],
    script: [{ calls: [call('Slow')] }, { text: 'Done.' }],
  })
  await using _ = bench
  const conversation = await bench.converse()
  await conversation.post(userText('go', true))
  await slow.entered
  disk.isFull = true
  slow.open()
  await expect.poll(() => conversation.view().status).toBe('error')
  await expect(conversation.post(userText('hello?'))).rejects.toMatchObject({ code: 'storage_full' })
  await expect(conversation.run()).rejects.toMatchObject({ code: 'storage_full' })

  disk.isFull = false
  expect(await endOf(conversation, await conversation.run())).toMatchObject({
    stop_reason: 'completed',
    final_text: 'Done.',
  })
  expect(slow.calls()).toBe(1)
  const events = await eventsOf(conversation)
  expect(only(events, 'Result').map((event) => event.stop_reason)).toEqual(['error', 'completed'])
  expect(only(events, 'ToolResult')).toMatchObject([{ output: 'through' }])
  expect(only(events, 'ErrorEvent')).toMatchObject([
    { error_type: 'internal', message: 'There is no room to store this.' },
  ])
})

test('a pause that finds no room still stops the run, and leaves it so that it can be run again', async () => {
  const { bench, disk } = await setFullBench({
    script: ({ body }) => (body.messages.length > 2 ? { text: 'Again.' } : { text: 'Never said.', delay_ms: 10_000 }),
  })
  await using _ = bench
  const conversation = await bench.converse()
  await conversation.post(userText('go', true))
  disk.isFull = true
  await expect(conversation.pause({ interrupt: false })).rejects.toMatchObject({ code: 'storage_full' })
  expect(conversation.view().status).not.toBe('running')

  disk.isFull = false
  const { run_id } = await conversation.post(userText('once more', true))
  expect(await endOf(conversation, run_id!)).toMatchObject({ stop_reason: 'completed', final_text: 'Again.' })
  expect(only(await eventsOf(conversation), 'Result').map((event) => event.stop_reason)).toEqual([
    'paused',
    'completed',
  ])
})

test('a task whose end finds no room ends once there is room, and no other is started in its place meanwhile', async () => {
  const slow = gate('Slow')
  const { bench, disk } = await setFullBench({
    tools: [slow.tool],
    script: [{ calls: [call('Slow')] }, { text: 'Done.' }],
  })
  await using _ = bench
  const conversation = await bench.converse()
  const ticker = { type: 'Ticker', interval: 1, count: 1 } as const
  const agentRun = { type: 'AgentRun', message: { role: 'user', content: 'go' } } as const
  const post = async (runnable: typeof ticker | typeof agentRun) =>
    (await conversation.tasks.post({ title: 'task', runnable })).task_id
  const [one, two] = [await post(agentRun), await post(agentRun)]
  await slow.entered
  const tick = await post(ticker)
  disk.isFull = true
  await expect(conversation.tasks.cancel(one)).rejects.toMatchObject({ code: 'storage_full' })
  await expect.poll(() => bench.logged.filter((line) => line.includes('could not be stored')).length).toBeGreaterThan(0)
  await expect(post(ticker)).rejects.toMatchObject({ code: 'storage_full' })

  disk.isFull = false
  await conversation.post(userText('there is room'))
  await expect.poll(async () => (await conversation.tasks.get(two)).status).toBe('completed')
  expect(await conversation.tasks.get(one)).toMatchObject({ status: 'cancelled' })
  expect(await conversation.tasks.get(tick)).toMatchObject({ status: 'completed', result: { ticks: 1 } })
  const ends = only(await eventsOf(conversation), 'TaskUpdate').filter((event) => event.result)
  expect(ends).toHaveLength(3)
})
