import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { EventDraft } from '../../../src/contract/events/event.ts'
import { Problem } from '../../../src/contract/problem.ts'
import { outcomeOf } from '../../../src/state/client-outcome.ts'
import { HeldRequest, HeldRequests } from '../../../src/conversations/requests/held-requests.ts'
import type { Conversation } from '../../../src/conversations/conversation.ts'
import { call, eventsOf, only, setBench, userText } from '../fixtures.ts'
import { openOf, untilOpen } from '../../support/answering.ts'
import { mortalStore } from '../mortal-store.ts'

const TOOL = { name: 'look_up', description: '', input_schema: { type: 'object' } }

async function setScene() {
  const store = mortalStore()
  const bench = await setBench({ logs: store, script: [{ calls: [call('look_up')] }, { text: 'Done.' }] })
  store.home.directory = join(bench.dataDir, 'sessions')
  const id = await bench.create({ client_tools: [TOOL] })
  const conversation = await bench.manager.open(id)
  await conversation.post(userText('go', true))
  const { request_id, tool_use_ids } = await untilOpen(conversation, 'client_tool')
  return { store, bench, id, conversation, request_id, tool_use_ids }
}

const answer = ({ requests }: Conversation, requestId: string) =>
  requests.answer(requestId, { kind: 'client_tool', output: 'found', is_error: false })

test('after a crash the result that a client sent is the result of its call', async () => {
  const { bench, store, id, conversation, request_id, tool_use_ids } = await setScene()
  await using _ = bench
  // The server dies as soon as the result of the client is stored: nothing else reaches the disk.
  conversation.log.subscribe({
    onEvents: (events) => {
      if (events.some(({ event }) => event.type === 'RequestAnswered')) store.fault = () => 'storage_failed'
    },
  })
  await answer(conversation, request_id)
  await bench.restart({ kill: true, between: store.die })
  store.fault = () => undefined
  const reopened = await bench.manager.open(id)
  const events = await eventsOf(reopened)
  expect(only(events, 'ToolResult')).toMatchObject([{ tool_use_id: tool_use_ids[0], output: 'found', is_error: false }])
  expect(await answer(reopened, request_id)).toMatchObject({ status: 'paused', pending: 0 })
})

test('a result that the disk refuses is not accepted, and the call still waits', async () => {
  const { bench, store, conversation, request_id } = await setScene()
  await using _ = bench
  store.fault = () => 'storage_full'
  await expect(answer(conversation, request_id)).rejects.toMatchObject({ code: 'storage_full' })
  store.fault = () => undefined
  expect(openOf(conversation, 'client_tool')).toHaveLength(1)
  expect(await answer(conversation, request_id)).toMatchObject({ pending: 0 })
  await expect.poll(() => conversation.state.status).toBe('idle')
  expect(only(await eventsOf(conversation), 'ToolResult')).toHaveLength(1)
})

const VIEW = {
  kind: 'client_tool' as const,
  request_id: '',
  opened_at: '',
  tool_use_ids: ['a'],
  payload: { name: 'look_up', input: {} },
}

const FOUND = { output: 'found', is_error: false }

test('an answer that is being stored counts, although the deadline passes meanwhile', async () => {
  const waiting = new HeldRequest<'client_tool'>(VIEW)
  const stored = Promise.withResolvers<void>()
  const answered = waiting.answer(FOUND, () => stored.promise)
  waiting.giveUp('timeout')
  expect(waiting.isOver).toBe(true)
  stored.resolve()
  await answered
  expect(await waiting.end).toEqual({ by: 'answer', answer: FOUND })
})

test('a call whose deadline passes while an answer fails to be stored ends by its deadline', async () => {
  const waiting = new HeldRequest<'client_tool'>(VIEW)
  const stored = Promise.withResolvers<never>()
  const answered = waiting.answer(FOUND, () => stored.promise)
  waiting.giveUp('timeout')
  stored.reject(new Problem('storage_full', 'The disk is full.'))
  await expect(answered).rejects.toThrow('The disk is full.')
  expect(await waiting.end).toEqual({ by: 'timeout' })
})

/** Requests whose log stores when it is told to. */
function setHeld() {
  const stored = Promise.withResolvers<void>()
  const appended: EventDraft[] = []
  const held = new HeldRequests('client_tool', {
    log: {
      append: (drafts) => (appended.push(...drafts), stored.promise.then(() => [])),
      subscribe: () => () => {},
    },
    state: { current: { run: undefined, subagents: [] } },
  })
  const { signal, abort } = abortable()
  const end = held.hold({ toolUseId: 'a', payload: { name: 'look_up', input: {} }, timeoutMs: 60_000, signal })
  return { stored, appended, held, end, abort, request: held.get(held.views()[0]!.request_id)! }
}

function abortable() {
  const controller = new AbortController()
  return { signal: controller.signal, abort: () => controller.abort() }
}

test('an answer is stored after its request, however early it comes', async () => {
  const { stored, held, end, request } = setHeld()
  let isAnswered = false
  const answered = request.answer(FOUND, async () => {
    isAnswered = true
  })
  await Promise.resolve()
  expect(isAnswered).toBe(false)
  stored.resolve()
  await answered
  expect(await end).toEqual({ by: 'answer', answer: FOUND })
  expect(held.views()).toEqual([])
})

test('a request has one end in the log, although it is interrupted while its answer is being stored', async () => {
  for (const isAnswered of [true, false]) {
    const { stored, appended, end, abort, request } = setHeld()
    stored.resolve()
    const answer = isAnswered ? request.answer(FOUND, async () => abort()) : abort()
    await answer
    expect((await end).by).toBe(isAnswered ? 'answer' : 'interrupted')
    expect(appended.map(({ type }) => type)).toEqual(['RequestOpened', ...(isAnswered ? [] : ['RequestClosed'])])
  }
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
