/** What the disk did not take is stored as soon as it does, without anybody asking for it. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Conversation } from '../../src/conversations/conversation.ts'
import { createJsonlStore } from '../../src/storage/files/log/jsonl-store.ts'
import { PATIENCE_S } from '../support/patience.ts'
import type { BenchOptions } from './fixtures.ts'
import { call, endOf, eventsOf, gate, only, setBench, userText } from './fixtures.ts'
import { mortalStore } from './mortal-store.ts'

/** A bench on a store of real files that can be out of room. */
async function setFullBench(options: BenchOptions) {
  const store = mortalStore()
  const disk = { isFull: false, refused: 0, store }
  store.fault = () => {
    if (disk.isFull) disk.refused++
    return disk.isFull ? 'storage_full' : undefined
  }
  const bench = await setBench({ ...options, logs: store })
  return { bench, disk }
}

const stopReasons = async (conversation: Conversation) =>
  only(await eventsOf(conversation), 'Result').map((event) => event.stop_reason)

test('a run whose events do not fit on the disk ends; the log says so once there is room, and its tool does not run twice', async () => {
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
  await expect.poll(() => stopReasons(conversation)).toEqual(['error'])
  expect(conversation.view().status).toBe('error')
  expect(await endOf(conversation, await conversation.run())).toMatchObject({
    stop_reason: 'completed',
    final_text: 'Done.',
  })
  expect(slow.calls()).toBe(1)
  const events = await eventsOf(conversation)
  expect(only(events, 'Result').map((event) => event.stop_reason)).toEqual(['error', 'completed'])
  expect(only(events, 'ToolResult')).toMatchObject([{ output: 'through' }])
  expect(only(events, 'ErrorEvent')).toMatchObject([
    { error_type: 'internal', message: 'The disk did not take it: storage_full.' },
  ])
})

test.each(['ends the run', 'came after a pause'])(
  'a result that does not fit on the disk, and %s, is stored once there is room, without a request',
  async (when) => {
    const slow = gate('Slow')
    const { bench, disk } = await setFullBench({ tools: [slow.tool], script: [{ calls: [call('Slow')] }] })
    await using _ = bench
    const conversation = await bench.converse()
    await conversation.post(userText('go', true))
    await slow.entered
    if (when === 'came after a pause') await conversation.pause({ interrupt: false })
    disk.isFull = true
    slow.open()
    if (when === 'ends the run') await expect.poll(() => conversation.view().status).toBe('error')
    else await expect.poll(() => slow.calls()).toBe(1)
    await expect(conversation.post(userText('Is there room?'))).rejects.toMatchObject({ code: 'storage_full' })
    disk.isFull = false
    await expect
      .poll(() => eventsOf(conversation).then((all) => only(all, 'ToolResult')))
      .toMatchObject([{ output: 'through', is_error: false }])
    await expect.poll(() => conversation.isAtRest()).toBe(true)
    expect(slow.calls()).toBe(1)
  },
)

test('a pause that cannot be stored still stops the run, and the conversation can run again', async () => {
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
  await expect.poll(() => stopReasons(conversation)).toEqual(['paused'])
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
    (await conversation.tasks.post({ title: 'task', runnable })).id
  const [one, two] = [await post(agentRun), await post(agentRun)]
  await slow.entered
  const tick = await post(ticker)
  disk.isFull = true
  await expect(conversation.tasks.cancel(one)).rejects.toMatchObject({ code: 'storage_full' })
  await expect.poll(() => bench.logged.filter((line) => line.includes('could not be stored')).length).toBeGreaterThan(0)
  await expect(post(ticker)).rejects.toMatchObject({ code: 'storage_full' })

  disk.isFull = false
  for (const id of [two, tick])
    await expect.poll(async () => (await conversation.tasks.get(id)).status).toBe('completed')
  expect(await conversation.tasks.get(one)).toMatchObject({ status: 'cancelled' })
  expect(await conversation.tasks.get(tick)).toMatchObject({ status: 'completed', result: { ticks: 1 } })
  const ends = only(await eventsOf(conversation), 'TaskUpdate').filter((event) => event.result)
  expect(ends).toHaveLength(3)
})

/** How a run is ended from outside. */
const ENDS = {
  'a pause': (conversation: Conversation) => conversation.pause({ interrupt: true }),
  'a cancellation': (conversation: Conversation) => conversation.tasks.cancel(conversation.state.tasks[0]!.id),
}

test.each(['a pause', 'a cancellation'] as const)(
  'the results of calls that %s ended on a full disk are stored before the end of their run',
  async (kind) => {
    const slow = gate('Slow')
    const { bench, disk } = await setFullBench({
      tools: [slow.tool],
      script: [{ calls: [call('Slow'), call('Slow')] }],
    })
    await using _ = bench
    const conversation = await bench.converse()
    const runnable = { type: 'AgentRun', message: { role: 'user', content: 'go' } } as const
    await conversation.tasks.post({ title: 'task', runnable })
    await slow.entered
    disk.isFull = true
    await expect(ENDS[kind](conversation)).rejects.toMatchObject({ code: 'storage_full' })
    disk.isFull = false
    // It comes before the first retry.
    await conversation.post(userText('Is there room?'))
    const ends = (await eventsOf(conversation)).filter(({ type }) => type === 'ToolResult' || type === 'Result')
    expect(ends.map((event) => ('output' in event ? event.output : event.type))).toEqual([
      'ended',
      expect.any(String),
      'Result',
    ])
    expect(conversation.state.openCalls).toEqual([])
  },
)

test('a result that did not fit on the disk is stored when the server stops', async () => {
  const slow = gate('Slow')
  const { bench, disk } = await setFullBench({ tools: [slow.tool], script: [{ calls: [call('Slow')] }] })
  await using _ = bench
  const conversation = await bench.converse()
  await conversation.post(userText('go', true))
  await slow.entered
  await conversation.pause({ interrupt: false })
  disk.isFull = true
  slow.open()
  await expect.poll(() => disk.refused).toBeGreaterThan(0)
  disk.isFull = false
  await bench.restart()
  const results = only(await eventsOf(await bench.manager.open(conversation.id)), 'ToolResult')
  expect(results).toMatchObject([{ output: 'through', is_error: false }])
})

test('a client that waits for a run gets a response when its end cannot be stored', async () => {
  const slow = gate('Slow')
  const { bench, disk } = await setFullBench({ tools: [slow.tool], script: [{ calls: [call('Slow')] }] })
  await using _ = bench
  const conversation = await bench.converse()
  const { run_id } = await conversation.post(userText('go', true))
  const waiting = conversation.waitForRun(run_id!, PATIENCE_S, new AbortController().signal)
  await slow.entered
  disk.isFull = true
  slow.open()
  expect(await waiting).toEqual({ run_id, status: 'error' })
  expect(conversation.view().status).toBe('error')
})

test('a conversation that cannot be recovered because the disk is full can be read, and continues once there is room', async () => {
  const slow = gate('Slow')
  const { bench, disk } = await setFullBench({
    tools: [slow.tool],
    script: [{ calls: [call('Slow')] }, { text: 'Resumed.' }],
  })
  await using _ = bench
  const { id } = await bench.converse({ resume_on_start: true })
  await (await bench.manager.open(id)).post(userText('go', true))
  await slow.entered
  disk.isFull = true
  await bench.restart({ kill: true, between: disk.store.die })
  const conversation = await bench.manager.open(id)
  expect(conversation.view().status).toBe('error')
  expect(only(await eventsOf(conversation), 'ToolUse')).toHaveLength(1)
  await expect(conversation.post(userText('hello?'))).rejects.toMatchObject({ code: 'storage_full' })

  await bench.restart()
  disk.isFull = false
  const again = await bench.manager.open(id)
  await expect.poll(() => stopReasons(again)).toEqual(['server_restart', 'completed'])
  expect(only(await eventsOf(again), 'ToolResult')).toMatchObject([{ error_type: 'interrupted' }])
})

test('a log that failed at the end of a run is reopened automatically: the run ends, and the waiting tasks continue', async () => {
  const slow = gate('Slow')
  const { bench, disk } = await setFullBench({
    tools: [slow.tool],
    script: [{ calls: [call('Slow')] }, { text: 'Done.' }],
  })
  await using _ = bench
  const { id, tasks } = await bench.converse()
  const agentRun = { type: 'AgentRun', message: { role: 'user', content: 'go' } } as const
  for (const title of ['one', 'two']) await tasks.post({ title, runnable: agentRun })
  await slow.entered
  let failures = 0
  disk.store.fault = () => (failures++ === 0 ? 'storage_failed' : undefined)
  slow.open()

  const directory = join(bench.dataDir, 'sessions')
  const results = async () => {
    await using log = await createJsonlStore({ directory }).view(id)
    const { events } = await log.read({ limit: 1000 })
    return only(
      events.map((stored) => stored.event),
      'Result',
    )
  }
  await expect.poll(async () => (await results()).map((event) => event.stop_reason)).toEqual(['error', 'completed'])
  const { items } = await (await bench.manager.open(id)).tasks.list({ order: 'asc', limit: 10 })
  expect(items.map(({ status }) => status)).toEqual(['error', 'completed'])
})

test('a conversation that cannot be opened at the start of the server is tried again, and its run resumed', async () => {
  const slow = gate('Slow')
  const { bench, disk } = await setFullBench({
    tools: [slow.tool],
    script: [{ calls: [call('Slow')] }, { text: 'Resumed.' }],
  })
  await using _ = bench
  const conversation = await bench.converse({ resume_on_start: true })
  await conversation.post(userText('go', true))
  await slow.entered
  const open = disk.store.open.bind(disk.store)
  let isLimited = true
  disk.store.open = async (id) => {
    if (isLimited) throw Object.assign(new Error('too many open files'), { code: 'EMFILE', syscall: 'open' })
    return await open(id)
  }
  await bench.restart({ kill: true, between: disk.store.die })
  isLimited = false
  const path = join(bench.sessionOf(conversation.id), 'events.jsonl')
  await expect.poll(() => readFile(path, 'utf8')).toContain('"final_text":"Resumed."')
})

test('a run that the log holds although the disk refused it ends as an error', async () => {
  const { bench, disk } = await setFullBench({ script: [{ text: 'Never asked for.' }] })
  await using _ = bench
  const conversation = await bench.converse()
  let appends = 0
  disk.store.fault = () => (appends++ === 0 ? 'stored_and_failed' : undefined)
  await expect(conversation.run()).rejects.toMatchObject({ code: 'storage_failed' })
  const path = join(bench.sessionOf(conversation.id), 'events.jsonl')
  await expect.poll(() => readFile(path, 'utf8')).toContain('"stop_reason":"error"')
  expect((await bench.view(conversation.id)).status).toBe('error')
  expect(bench.model.requests).toEqual([])
})
