import { describe, expect, test } from 'vitest'
import type { ScriptedQuestion } from '../../../src/llm/scripted/script.ts'
import { createTask } from '../../../src/tools/task/task.ts'
import { outcomeOf } from '../../../src/state/client-outcome.ts'
import type { Event } from '../../../src/contract/events/event.ts'
import type { Conversation } from '../../../src/conversations/conversation.ts'
import type { BenchOptions } from '../fixtures.ts'
import { call, eventsOf, gate, only, setBench, userText } from '../fixtures.ts'
import { openedIn, openOf, untilOpen } from '../../support/answering.ts'
import { longEnough } from '../../support/long-enough.ts'
import { until } from '../../support/until.ts'
import { mortalStore } from '../mortal-store.ts'

/** How long a call waits inside its run here, in milliseconds. */
const REST_AFTER_MS = 20
const NEVER_MS = 3_600_000

const TOOL = { name: 'look_up', description: '', input_schema: { type: 'object' } }

async function setScene() {
  const store = mortalStore()
  const bench = await setBench({ logs: store, script: [{ calls: [call('look_up')] }, { text: 'Done.' }] })
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

describe('a call that no client has answered at once rests', () => {
  const resting = async (fields: { readonly timeout?: number } = {}, options: BenchOptions = {}) => {
    const bench = await setBench({
      script: [{ calls: [call('look_up')] }, { text: 'Done.' }],
      deps: { clientTools: { restAfterMs: REST_AFTER_MS } },
      ...options,
    })
    const id = await bench.create({ client_tools: [{ ...TOOL, ...fields }] })
    // As a request does it: otherwise it may be closed as idle meanwhile.
    const release = bench.manager.hold(id)
    const conversation = await bench.manager.open(id)
    await conversation.post(userText('go', true))
    release()
    // By the log: on a slow machine a deadline may have passed already.
    const rests = (event: Event) => event.type === 'StatusUpdate' && event.status === 'waiting_for_client'
    const events = async () => await eventsOf(await bench.manager.open(id))
    const isOver = (event: Event) => rests(event) || event.type === 'RequestClosed'
    await expect.poll(async () => (await events()).some(isOver)).toBe(true)
    const hasRested = (await events()).some(rests)
    if (fields.timeout === undefined) expect(hasRested).toBe(true)
    const [opened] = openedIn(await events(), 'client_tool')
    return { bench, id, conversation, hasRested, request_id: opened!.request_id, deadline: opened!.deadline }
  }
  /** With a deadline that passes soon, and not before the call rests. */
  const restingUntil = (firstSeconds: number, options?: BenchOptions) =>
    longEnough(firstSeconds, async (timeout) => {
      const scene = await resting({ timeout }, options)
      if (scene.hasRested) return scene
      await scene.bench[Symbol.asyncDispose]()
      return false
    })
  const untilStatus = (conversation: Conversation, status: string) =>
    expect.poll(() => conversation.state.status).toBe(status)
  const types = async (conversation: Conversation) => (await eventsOf(conversation)).map(({ type }) => type).slice(2)

  test('its run leaves its slot, and continues with the answer as the same run', async () => {
    const { bench, conversation, request_id } = await resting({}, { maxRuns: 1 })
    await using _ = bench
    const other = await bench.converse()
    await other.post(userText('go', true))
    await untilStatus(other, 'idle')
    expect(await answer(conversation, request_id)).toMatchObject({ status: 'running', pending: 0 })
    await untilStatus(conversation, 'idle')
    const events = await eventsOf(conversation)
    expect(await types(conversation)).toEqual([
      'StatusUpdate',
      'AssistantMessage',
      'ToolUse',
      'RequestOpened',
      'StatusUpdate',
      'RequestAnswered',
      'StatusUpdate',
      'ToolResult',
      'AssistantMessage',
      'Result',
      'StatusUpdate',
    ])
    expect(only(events, 'ToolResult')).toMatchObject([{ output: 'found', is_error: false }])
    expect(new Set(events.flatMap((event) => ('run_id' in event ? [event.run_id] : []))).size).toBe(1)
  })

  test.each([
    ['kill', REST_AFTER_MS, 'after it rests'],
    ['kill', NEVER_MS, 'before it rests'],
    ['stop', REST_AFTER_MS, 'after it rests'],
    ['stop', NEVER_MS, 'before it rests'],
  ])('it survives a %s of the server (%i ms: %s), and the answer resumes the run', async (how, restAfterMs) => {
    const store = mortalStore()
    const bench = await setBench({
      logs: store,
      script: [{ calls: [call('look_up')] }, { text: 'Done.' }],
      deps: { clientTools: { restAfterMs } },
    })
    await using _ = bench
    const id = await bench.create({ client_tools: [TOOL] })
    const before = await bench.manager.open(id)
    await before.post(userText('go', true))
    const { request_id } = await untilOpen(before, 'client_tool')
    if (restAfterMs === REST_AFTER_MS) await untilStatus(before, 'waiting_for_client')
    await bench.restart(how === 'kill' ? { kill: true, between: store.die } : {})
    const conversation = await bench.manager.open(id)
    expect(conversation.state.status).toBe('waiting_for_client')
    expect((await bench.manager.requests({ limit: 10 })).items).toMatchObject([{ request: { request_id } }])
    expect(await answer(conversation, request_id)).toMatchObject({ status: 'running' })
    await untilStatus(conversation, 'idle')
    expect(only(await eventsOf(conversation), 'ToolResult')).toMatchObject([{ output: 'found' }])
    expect(only(await eventsOf(conversation), 'Result')).toMatchObject([{ stop_reason: 'completed' }])
  })

  test('a message does not end it, and the run that continues reads both', async () => {
    const { bench, conversation, request_id } = await resting()
    await using _ = bench
    const { run_id } = await conversation.post(userText('and hurry', true))
    expect(run_id).toBe(conversation.state.run?.id)
    expect(conversation.state.status).toBe('waiting_for_client')
    await answer(conversation, request_id)
    await untilStatus(conversation, 'idle')
    const { messages } = bench.model.requests.at(-1)!.body
    expect(messages.slice(-2)).toMatchObject([
      { role: 'tool', content: 'found' },
      { role: 'user', content: 'and hurry' },
    ])
  })

  test('a run is refused while it waits, a pause keeps it, and a pause with interrupt ends it', async () => {
    const { bench, conversation, request_id } = await resting()
    await using _ = bench
    // The run that waits would read the message, with its own options.
    const withOptions = { ...userText('carefully', true), run_options: { permission_mode: 'plan' as const } }
    await expect(conversation.post(withOptions)).rejects.toMatchObject({ code: 'already_running' })
    await expect(conversation.run()).rejects.toMatchObject({
      code: 'waiting_for_client',
      details: { pending: [{ request_id, name: 'look_up' }] },
    })
    await conversation.pause({ interrupt: false })
    expect(conversation.state.status).toBe('paused')
    await conversation.run()
    expect(conversation.state.status).toBe('waiting_for_client')
    await conversation.pause({ interrupt: true })
    const events = await eventsOf(conversation)
    expect(only(events, 'RequestClosed')).toMatchObject([{ request_id, reason: 'interrupted' }])
    expect(only(events, 'ToolResult')).toMatchObject([
      { error_type: 'interrupted', output: expect.stringMatching(/may have executed it/) },
    ])
    await expect(answer(conversation, request_id)).rejects.toMatchObject({ code: 'request_closed' })
  })

  test('a result that comes while the conversation is paused is read by its next run', async () => {
    const { bench, conversation, request_id } = await resting()
    await using _ = bench
    await conversation.pause({ interrupt: false })
    expect(await answer(conversation, request_id)).toMatchObject({ status: 'paused', pending: 0 })
    await conversation.run()
    await untilStatus(conversation, 'idle')
    expect(only(await eventsOf(conversation), 'ToolResult')).toMatchObject([{ output: 'found' }])
  })

  test('its result is that of a tool that is not declared any more', async () => {
    const { bench, conversation, request_id } = await resting()
    await using _ = bench
    await bench.configure(conversation.id, { client_tools: [] })
    await answer(conversation, request_id)
    await untilStatus(conversation, 'idle')
    expect(only(await eventsOf(conversation), 'ToolResult')).toMatchObject([{ output: 'found', is_error: false }])
  })

  describe('its deadline', () => {
    /** Long enough for a conversation to be closed, and for a server to be stopped, before it passes. */
    const TIMEOUT_S = 1.5
    const timedOut = [{ error_type: 'timeout', output: expect.stringMatching(/No client sent a result/) }]

    test('ends it while the conversation is open, and the run continues', async () => {
      const { bench, conversation, request_id } = await restingUntil(0.2)
      await using _ = bench
      await untilStatus(conversation, 'idle')
      const events = await eventsOf(conversation)
      expect(only(events, 'RequestClosed')).toMatchObject([{ request_id, reason: 'timeout' }])
      expect(only(events, 'ToolResult')).toMatchObject(timedOut)
      await expect(answer(conversation, request_id)).rejects.toMatchObject({ code: 'request_closed' })
    })

    test('ends it after an earlier one whose result came in time', async () => {
      const task = (prompt: string) => call('Task', { description: 'x', prompt, run_in_background: true })
      const script = ({ messages }: ScriptedQuestion['body']) => {
        const said = JSON.stringify(messages.filter(({ role }) => role !== 'system'))
        const results = messages.filter(({ role }) => role === 'tool').length
        if (said.includes('both')) return results > 0 ? { text: 'Begun.' } : { calls: ['first', 'second'].map(task) }
        if (results === 0) return { calls: [call(said.includes('first') ? 'look_up' : 'look_on')] }
        // It rests: lists show nothing of it.
        return said.includes('first') && results === 1 ? { calls: [call('Gate')] } : { text: 'Done.' }
      }
      const createTools: BenchOptions['deps'] = {
        createTools: (names, { subagents }) => (names.length > 0 ? [gate().tool, createTask(subagents)] : []),
      }
      await using bench = await setBench({
        script,
        deps: { clientTools: { restAfterMs: REST_AFTER_MS }, ...createTools },
      })
      await longEnough(0.5, async (timeout) => {
        const client_tools = [
          { ...TOOL, timeout },
          { ...TOOL, name: 'look_on', timeout: timeout * 2 },
        ]
        const id = await bench.create({ tools: ['Bash', 'Task'], permission_rules: { ask: ['Gate'] }, client_tools })
        const conversation = await bench.manager.open(id)
        const closed = async () =>
          only(await eventsOf(conversation), 'RequestClosed').map(({ request_id }) => request_id)
        await conversation.post(userText('both', true))
        const open = await until('both calls', async () => {
          const calls = openOf(conversation, 'client_tool')
          return (calls.length === 2 || (await closed()).length > 0) && calls
        })
        const [first, second] = open.toSorted((a, b) => (a.deadline! < b.deadline! ? -1 : 1))
        if (second === undefined) return false
        const isInTime = await answer(conversation, first!.request_id).then(
          () => true,
          () => false,
        )
        if (isInTime) await expect.poll(closed).toContain(second.request_id)
        return isInTime
      })
    })

    test('ends it while the conversation is closed', async () => {
      const idle = { afterMs: 10, isShort: () => false }
      const { bench, id } = await restingUntil(TIMEOUT_S, { manager: { idle } })
      await using _ = bench
      await expect.poll(() => bench.manager.openCount).toBe(0)
      await expect.poll(() => bench.manager.count({ status: new Set(['idle']) }).count).toBe(1)
      expect(only(await eventsOf(await bench.manager.open(id)), 'ToolResult')).toMatchObject(timedOut)
    })

    test('ends it at the start of a server that was stopped when it passed', async () => {
      const { bench, id, deadline } = await restingUntil(TIMEOUT_S)
      await using _ = bench
      const hasPassed = () => expect.poll(() => Date.now()).toBeGreaterThan(Date.parse(deadline!))
      await bench.restart({ between: hasPassed })
      await expect.poll(() => bench.manager.count({ status: new Set(['idle']) }).count).toBe(1)
      expect(only(await eventsOf(await bench.manager.open(id)), 'ToolResult')).toMatchObject(timedOut)
    })
  })
})
