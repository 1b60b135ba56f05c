import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Problem } from '../../../src/contract/problem.ts'
import { outcomeOf } from '../../../src/state/client-outcome.ts'
import { WaitingCall, WaitingCalls } from '../../../src/conversations/client-tools/waiting-calls.ts'
import type { Conversation } from '../../../src/conversations/conversation.ts'
import type { ToolContext } from '../../../src/tools/tool.ts'
import { call, eventsOf, only, setBench, until, userText } from '../fixtures.ts'
import { mortalStore } from '../mortal-store.ts'

const TOOL = { name: 'look_up', description: '', input_schema: { type: 'object' } }

async function setScene() {
  const store = mortalStore()
  const bench = await setBench({ logs: store, script: [{ calls: [call('look_up')] }, { text: 'Done.' }] })
  store.home.directory = join(bench.dataDir, 'sessions')
  const id = await bench.create({ client_tools: [TOOL] })
  const conversation = await bench.manager.open(id)
  await conversation.post(userText('go', true))
  const { tool_use_id } = await until(conversation, 'ClientToolCall')
  return { store, bench, id, conversation, tool_use_id }
}

const answer = ({ clientCalls }: Conversation, toolUseId: string) =>
  clientCalls.answer(toolUseId, { output: 'found', is_error: false })

test('after a crash the result that a client sent is the result of its call', async () => {
  const { bench, store, id, conversation, tool_use_id } = await setScene()
  await using _ = bench
  // The server dies as soon as the result of the client is stored: nothing else reaches the disk.
  conversation.log.subscribe({
    onEvents: (events) => {
      if (events.some(({ event }) => event.type === 'ClientToolResult')) store.fault = () => 'storage_failed'
    },
  })
  await answer(conversation, tool_use_id)
  await bench.restart({ kill: true, between: store.die })
  store.fault = () => undefined
  const reopened = await bench.manager.open(id)
  const events = await eventsOf(reopened)
  expect(only(events, 'ToolResult')).toMatchObject([{ tool_use_id, output: 'found', is_error: false }])
  expect(await answer(reopened, tool_use_id)).toMatchObject({ status: 'paused', pending: 0 })
})

test('a result that the disk refuses is not accepted, and the call still waits', async () => {
  const { bench, store, conversation, tool_use_id } = await setScene()
  await using _ = bench
  store.fault = () => 'storage_full'
  await expect(answer(conversation, tool_use_id)).rejects.toMatchObject({ code: 'storage_full' })
  store.fault = () => undefined
  expect(conversation.clientCalls.pending().items).toHaveLength(1)
  expect(await answer(conversation, tool_use_id)).toMatchObject({ pending: 0 })
  await expect.poll(() => conversation.state.status).toBe('idle')
  expect(only(await eventsOf(conversation), 'ToolResult')).toHaveLength(1)
})

const VIEW = { tool_use_id: 'a', name: 'look_up', input: {}, asked_at: '', deadline: '' }

test('an answer that is being stored counts, although the deadline passes meanwhile', async () => {
  const waiting = new WaitingCall(VIEW)
  const stored = Promise.withResolvers<void>()
  const answered = waiting.answer(() => stored.promise.then(() => ({ output: 'found' })))
  waiting.giveUp('timeout', 'too late')
  expect(waiting.isOver).toBe(true)
  stored.resolve()
  await answered
  expect(await waiting.outcome).toEqual({ output: 'found' })
})

test('a call whose deadline passes while an answer fails to be stored ends by its deadline', async () => {
  const waiting = new WaitingCall(VIEW)
  const stored = Promise.withResolvers<never>()
  const answered = waiting.answer(() => stored.promise)
  waiting.giveUp('timeout', 'too late')
  stored.reject(new Problem('storage_full', 'The disk is full.'))
  await expect(answered).rejects.toThrow('The disk is full.')
  expect(await waiting.outcome).toMatchObject({ error: { type: 'timeout' } })
})

test('an answer is stored after its call, however early it comes', async () => {
  const stored = Promise.withResolvers<void>()
  const calls = new WaitingCalls({
    log: { append: () => stored.promise.then(() => []) },
    state: { current: { run: undefined, subagents: [] } },
  })
  const context = { toolUseId: 'a', signal: new AbortController().signal } as ToolContext
  const outcome = calls.handOver(TOOL, {}, context)
  let isAnswered = false
  const answered = calls.get('a')!.answer(async () => {
    isAnswered = true
    return { output: 'early' }
  })
  await Promise.resolve()
  expect(isAnswered).toBe(false)
  stored.resolve()
  await answered
  expect(await outcome).toEqual({ output: 'early' })
  expect(calls.get('a')).toBeUndefined()
})

test('what a client sends is bounded for the model, in each form', () => {
  const long = 'x'.repeat(200_000)
  const image = { type: 'image', media_type: 'image/png', data: 'aGk=' }
  for (const output of [
    long,
    { long },
    [long],
    [{ type: 'text', text: long }],
    [{ type: 'text', text: long }, image],
  ]) {
    const shown = outcomeOf({ output, isError: true })
    expect(JSON.stringify(shown.output).length).toBeLessThan(101_000)
    expect(shown).toMatchObject({ truncated: true, error: { type: 'failed' } })
  }
  for (const output of ['', null, 0, false, {}, [], [image]])
    expect(outcomeOf({ output, isError: false })).toEqual({ output })
  expect(outcomeOf({ output: ' ', isError: true }).error!.message).toContain('without a message')
})
