/** Conversations that nobody uses are closed, and opened again by whoever asks next; nothing is lost in between. */
import { execFile } from 'node:child_process'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { CreateConversation, ListConversations } from '../../src/contract/conversation.ts'
import type { Conversation } from '../../src/conversations/conversation.ts'
import type { Script } from '../../src/llm/scripted/script.ts'
import { createTask } from '../../src/tools/task/task.ts'
import { follow } from '../../src/events/event-feed.ts'
import { createRandom } from '../support/random.ts'
import { effort } from '../support/patience.ts'
import { startReceiver } from '../support/receiver.ts'
import type { BenchOptions } from './fixtures.ts'
import { call, endOf, eventsOf, gate, realShells, say, setBench, tool, userText } from './fixtures.ts'
import { takeTime } from '../support/take-time.ts'
import { approvalsOf } from '../support/answering.ts'

const AFTER_MS = 20
/** Of each writer. */
const MESSAGES = effort(40, 3000)

const setIdle = (options: BenchOptions = {}, isShort = () => false) =>
  setBench({ manager: { idle: { afterMs: AFTER_MS, isShort } }, ...options })

const closed = (conversation: Conversation) => expect.poll(() => conversation.log.ended).toBe('closing')

/** Resolves when three others have been closed, each of which became idle later. */
async function looks(): Promise<void> {
  await using other = await setIdle()
  for (let times = 0; times < 3; times++) await closed(await other.converse())
}

test('an idle one is closed, and is unchanged when it is requested again', async () => {
  await using bench = await setIdle()
  const first = await bench.converse({ title: 'Kept', metadata: { a: 1 } })
  const release = bench.manager.hold(first.id)
  await say(first)
  await expect.poll(() => first.state.status).toBe('idle')
  const before = await eventsOf(first)
  const view = first.view()
  release()
  await closed(first)
  const { items } = await bench.manager.list(ListConversations.parse({}))
  expect(items, 'a list shows it, and opens nothing').toEqual([view])
  bench.manager.hold(first.id)
  const second = await bench.manager.open(first.id)
  expect(second).not.toBe(first)
  expect(second.view()).toEqual(view)
  expect(await eventsOf(second)).toEqual(before)
  await say(second)
  expect((await eventsOf(second)).length).toBeGreaterThan(before.length)
})

test('one that waits for a decision is closed too, and can be decided then', async () => {
  const quick = tool('Quick', () => ({ output: 'ok' }))
  await using bench = await setIdle({ tools: [quick], script: [{ calls: [call('Quick')] }, { text: 'Done.' }] })
  const first = await bench.converse({ confirmation_mode: true })
  const release = bench.manager.hold(first.id)
  const { run_id } = await first.post(userText('go', true))
  await expect.poll(() => first.state.status).toBe('waiting_for_confirmation')
  release()
  await closed(first)
  bench.manager.hold(first.id)
  const second = await bench.manager.open(first.id)
  const { items } = approvalsOf(second).pending()
  await approvalsOf(second).approve(items[0]!.request_id)
  expect(await endOf(second, run_id!)).toMatchObject({ final_text: 'Done.' })
})

test('one that was paused is closed too, and its calls that have not begun run then', async () => {
  const slow = gate('Slow')
  const quick = tool('Quick', () => ({ output: 'ran' }))
  const script = [{ calls: [call('Slow'), call('Quick')] }, { text: 'Done.' }]
  await using bench = await setIdle({ tools: [slow.tool, quick], script })
  const first = await bench.converse()
  const release = bench.manager.hold(first.id)
  await first.post(userText('go', true))
  await slow.entered
  await first.pause({ interrupt: false })
  slow.open()
  await expect.poll(() => first.state.openCalls.length).toBe(1)
  release()
  await closed(first)
  bench.manager.hold(first.id)
  const second = await bench.manager.open(first.id)
  expect(await endOf(second, await second.run())).toMatchObject({ final_text: 'Done.' })
  const outputs = (await eventsOf(second)).flatMap((event) => (event.type === 'ToolResult' ? [event.output] : []))
  expect(outputs).toEqual(['through', 'ran'])
})

test('one whose subagent in the background waits for a decision is closed too, and the subagent continues with it', async () => {
  const quick = tool('Quick', () => ({ output: 'it acted' }))
  const start = { description: 'x', prompt: 'be quick', subagent_type: 'worker', run_in_background: true }
  const script: Script = ({ text }) => {
    if (text.includes('You are a worker'))
      return text.includes('it acted') ? { text: 'It ran.' } : { calls: [call('Quick')] }
    if (text.includes('It ran.')) return { text: 'Done.' }
    return text.includes('works in the background. A message') ? { text: 'Begun.' } : { calls: [call('Task', start)] }
  }
  const deps: BenchOptions['deps'] = {
    createTools: (names, { subagents }) => [quick, ...(names.includes('Task') ? [createTask(subagents)] : [])],
  }
  await using bench = await setIdle({ deps, script })
  const agents = { worker: { description: 'Works.', prompt: 'You are a worker.' } }
  const first = await bench.converse({ agents, permission_mode: 'default' })
  const release = bench.manager.hold(first.id)
  await first.post(userText('go', true))
  await expect.poll(() => approvalsOf(first).pending().items.length).toBe(1)
  release()
  await closed(first)
  bench.manager.hold(first.id)
  const second = await bench.manager.open(first.id)
  const [item] = approvalsOf(second).pending().items
  await approvalsOf(second).approve(item!.request_id)
  await expect.poll(async () => finalTexts(second)).toEqual(['Begun.', 'It ran.', 'Done.'])
})

test('one that was paused while a subagent works is closed too, and the next run continues the subagent', async () => {
  const slow = gate('Slow')
  const quick = tool('Quick', () => ({ output: 'it acted' }))
  const script: Script = ({ text }) => {
    if (text.includes('You are a worker'))
      return text.includes('it acted') ? { text: 'It ran.' } : { calls: [call('Slow'), call('Quick')] }
    return text.includes('It ran.')
      ? { text: 'Done.' }
      : { calls: [call('Task', { description: 'x', prompt: 'be slow', subagent_type: 'worker' })] }
  }
  const deps: BenchOptions['deps'] = {
    createTools: (names, { subagents }) => [
      slow.tool,
      quick,
      ...(names.includes('Task') ? [createTask(subagents)] : []),
    ],
  }
  await using bench = await setIdle({ deps, script })
  const first = await bench.converse({ agents: { worker: { description: 'Works.', prompt: 'You are a worker.' } } })
  const release = bench.manager.hold(first.id)
  await first.post(userText('go', true))
  await slow.entered
  await first.pause({ interrupt: false })
  slow.open()
  await expect.poll(() => first.state.subagents[0]?.agent.openCalls.length).toBe(1)
  release()
  await closed(first)
  bench.manager.hold(first.id)
  const second = await bench.manager.open(first.id)
  expect(await endOf(second, await second.run())).toMatchObject({ final_text: 'Done.' })
  expect(await finalTexts(second)).toEqual(['', 'It ran.', 'Done.'])
  expect(slow.calls()).toBe(1)
})

const finalTexts = async (conversation: Conversation) =>
  (await eventsOf(conversation)).flatMap((event) => (event.type === 'Result' ? [event.final_text] : []))

describe('stays open', () => {
  test('while it is held, and while a run works', async () => {
    const slow = gate('Slow')
    await using bench = await setIdle({ tools: [slow.tool], script: [{ calls: [call('Slow')] }, { text: 'Done.' }] })
    const conversation = await bench.converse()
    const release = bench.manager.hold(conversation.id)
    await looks()
    expect(conversation.log.ended).toBeUndefined()
    await conversation.post(userText('go', true))
    await slow.entered
    release()
    await looks()
    expect(conversation.log.ended).toBeUndefined()
    slow.open()
    await closed(conversation)
    const events = await eventsOf(await bench.manager.open(conversation.id))
    expect(events.at(-1)).toMatchObject({ type: 'StatusUpdate', status: 'idle' })
  })

  test('while something runs in it', async () => {
    await using bench = await setIdle({ deps: { createShells: realShells() } })
    const id = await bench.create()
    const release = bench.manager.hold(id)
    const conversation = await bench.manager.open(id)
    const { commands, processes } = conversation.exec
    const request = { command: 'sleep 1000', session_id: 'x', background: true, kill_on_disconnect: false }
    const { command_id } = await commands.start(request)
    release()
    await looks()
    expect(conversation.log.ended).toBeUndefined()
    expect(await processes.list()).not.toEqual([])
    await commands.end(command_id)
    await closed(conversation)
  })

  test('while an event waits for delivery', async () => {
    await using receiver = await startReceiver()
    await using bench = await setIdle()
    const id = await bench.create()
    const release = bench.manager.hold(id)
    const conversation = await bench.manager.open(id)
    await conversation.webhooks.create({ url: receiver.url })
    await receiver.down()
    await conversation.post(userText('one'))
    release()
    await looks()
    expect(conversation.log.ended).toBeUndefined()
    await receiver.up()
    await receiver.untilReceived((all) => all.length > 0)
    await closed(conversation)
  })
})

test('the least recently used are closed if more are open unused than may be; those in use and busy ones stay', async () => {
  const slow = gate('Slow')
  const idle = { afterMs: 3_600_000, isShort: () => false, maxUnused: 10 }
  const script = [{ calls: [call('Slow')] }, { text: 'Done.' }]
  await using bench = await setBench({ manager: { idle }, tools: [slow.tool], script })
  const { manager } = bench
  const [held, busy, old] = [await bench.converse(), await bench.converse(), await bench.converse()]
  using _ = { [Symbol.dispose]: manager.hold(held.id) }
  await busy.post(userText('go', true))
  await slow.entered
  for (let i = 0; i < 50; i++) await bench.create()
  const last = await bench.converse()
  await expect.poll(() => manager.openCount).toBe(1 + idle.maxUnused)
  expect([held, busy, old, last].map(({ log }) => log.ended)).toEqual([undefined, undefined, 'closing', undefined])
  slow.open()
  await expect.poll(() => busy.state.status).toBe('idle')
  // Each of these is closed again, and opened by the next request.
  for (let i = 0; i < 2; i++) expect((await manager.open(old.id)).id).toBe(old.id)
})

test('instead of a busy one, another is closed, although nothing is used afterwards', async () => {
  const slow = gate('Slow')
  const idle = { afterMs: 3_600_000, isShort: () => false, maxUnused: 2 }
  const script = [{ calls: [call('Slow')] }, { text: 'Done.' }]
  await using bench = await setBench({ manager: { idle }, tools: [slow.tool], script })
  const busy = await bench.converse()
  await busy.post(userText('go', true))
  await slow.entered
  const [one, other] = [await bench.converse(), await bench.converse()]
  await expect.poll(() => bench.manager.openCount).toBe(2)
  expect([busy, one, other].map(({ log }) => log.ended)).toEqual([undefined, 'closing', undefined])
  slow.open()
  await expect.poll(() => busy.state.status).toBe('idle')
})

test('a snapshot of the current state is not written again: neither when the conversation is closed, nor when the server stops', async () => {
  await using bench = await setIdle()
  const hold = async () => {
    const id = await bench.create()
    const release = bench.manager.hold(id)
    return { conversation: await bench.manager.open(id), release }
  }
  const [{ conversation: one, release: releaseOne }, { conversation: other, release }] = [await hold(), await hold()]
  for (const to of [one, other]) await say(to)
  const snapshotOf = ({ id }: Conversation) => join(bench.sessionOf(id), 'meta.json')
  const inodeOf = async (of: Conversation) => (await stat(snapshotOf(of))).ino
  for (const each of [one, other])
    await expect.poll(async () => JSON.parse(await readFile(snapshotOf(each), 'utf8')).lastSeq).toBe(each.state.lastSeq)
  const before = [await inodeOf(one), await inodeOf(other)]
  releaseOne()
  await closed(one)
  release()
  await bench.manager.close()
  expect([await inodeOf(one), await inodeOf(other)]).toEqual(before)
})

test('while memory is short, conversations are closed sooner', async () => {
  let isShort = false
  await using bench = await setBench({
    manager: { idle: { afterMs: 3_600_000, shortMs: AFTER_MS, isShort: () => isShort } },
  })
  const conversation = await bench.converse()
  await looks()
  expect(conversation.log.ended).toBeUndefined()
  isShort = true
  await closed(conversation)
})

test('while the server is short, idle shells end, but not during a run, and continue with their state', async () => {
  const slow = gate('Slow')
  let isShort = false
  const idle = { afterMs: 3_600_000, shortMs: AFTER_MS, isShort: () => isShort }
  const script = [{ calls: [call('Slow')] }, { text: 'Done.' }]
  const deps = { createShells: realShells() }
  await using bench = await setBench({ manager: { idle }, deps, tools: [slow.tool], script })
  const conversation = await bench.converse()
  using _ = { [Symbol.dispose]: bench.manager.hold(conversation.id) }
  const { commands, shells } = conversation.exec
  const request = { session_id: 'x', background: false, kill_on_disconnect: false }
  const run = (command: string) => commands.run({ ...request, command })
  await run('export kept=1; cd /')
  const sessions = async () => (await shells.list()).map(({ status }) => status)
  await conversation.post(userText('go', true))
  await slow.entered
  isShort = true
  await looks()
  expect(await sessions()).toEqual(['idle'])
  slow.open()
  await expect.poll(sessions).toEqual(['suspended'])
  expect(await run('echo $kept; pwd')).toMatchObject({ stdout: '1\n/\n' })
})

test('commands run also when idle shells hold the file descriptors: these end, and the commands wait for it', async () => {
  const child = join(import.meta.dirname, 'children/with-few-descriptors.ts')
  const { stdout } = await promisify(execFile)('bash', ['-c', 'ulimit -n 160; exec "$0" "$@"', process.execPath, child])
  expect(JSON.parse(stdout)).toEqual({ limit: 160, outputs: Array.from({ length: 24 }, (_, n) => String(n)) })
})

test('one that is deleted while it is closed is gone, with its data', async () => {
  await using bench = await setIdle()
  const conversation = await bench.converse()
  await closed(conversation)
  await bench.manager.delete(conversation.id)
  await expect(bench.manager.open(conversation.id)).rejects.toMatchObject({ code: 'conversation_deleted' })
  await expect(stat(join(bench.workdirBase, conversation.id))).rejects.toMatchObject({ code: 'ENOENT' })
})

test('requests that arrive while it is being closed all succeed, each event stored and followed once', async () => {
  const random = createRandom(Date.now() % 1_000_000)
  const pause = () => takeTime(random.below(12))
  await using bench = await setBench({ manager: { idle: { afterMs: 2, isShort: () => false } } })
  const id = await bench.create()
  const objects = new Set<Conversation>()
  const texts: string[] = []
  /** As a request does: it holds what it asks for. */
  const request = async (work: (conversation: Conversation) => Promise<void>) => {
    const release = bench.manager.hold(id)
    const conversation = await bench.manager.open(id)
    objects.add(conversation)
    await work(conversation)
    release()
    await pause()
  }
  const write = async (name: string) => {
    for (let i = 0; i < MESSAGES; i++)
      await request(async (conversation) => {
        texts.push(`${name} ${i}`)
        await conversation.post(userText(`${name} ${i}`))
      })
  }
  const seen: number[] = []
  const read = async (count: number) => {
    while (seen.length < count)
      await request(async ({ log }) => {
        const signal = AbortSignal.timeout(random.below(4) + 1)
        for await (const { records } of follow(log, { afterSeq: seen.length, signal }))
          for (const { seq } of records) if (seq !== undefined) seen.push(seq)
      })
  }
  // On a busy machine the requests may overlap all the time: then it is not closed in between, and they go on.
  for (let round = 1; objects.size < 2; round++)
    await Promise.all([write(`one ${round}`), write(`two ${round}`), read(2 * MESSAGES * round + 1)])
  expect(seen).toEqual(seen.map((_, i) => i + 1))
  bench.manager.hold(id)
  const events = await eventsOf(await bench.manager.open(id))
  const stored = events.flatMap((event) =>
    event.type === 'UserMessage' ? event.content.map((part) => ('text' in part ? part.text : '')) : [],
  )
  expect(stored.toSorted()).toEqual(texts.toSorted())
})

test('metadata, which is in memory while a conversation is open, has at most 64 KiB as JSON', () => {
  const refusalOf = (metadata: object) =>
    CreateConversation.safeParse({ metadata }).error?.issues.map(({ path, message }) => `${path.join('.')} ${message}`)
  expect(refusalOf({ a: 'x'.repeat(65_528) })).toBeUndefined()
  expect(refusalOf({ a: 'x'.repeat(65_529) })).toEqual([expect.stringMatching(/^metadata has more than 64 KiB/)])
  expect(refusalOf({ a: 'é'.repeat(32_768) }), 'bytes are counted').toBeDefined()
})
