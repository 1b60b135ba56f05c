/** Calls of clients that end while something else happens to them: each has one end, and what was accepted counts. */
import { expect, test } from 'vitest'
import { createTask } from '../../../src/tools/task/task.ts'
import type { TaskAccess } from '../../../src/tools/task/task-access.ts'
import type { Conversation } from '../../../src/conversations/conversation.ts'
import { openOf, untilOpen } from '../../support/answering.ts'
import type { Bench, BenchOptions } from '../fixtures.ts'
import { call, eventsOf, gate, only, setBench, tool, userText } from '../fixtures.ts'
import { mortalStore } from '../mortal-store.ts'

const TOOL = { name: 'look_up', description: '', input_schema: { type: 'object' } }

async function setScene(options: BenchOptions, fields: object = {}) {
  const store = mortalStore()
  const bench = await setBench({ logs: store, ...options })
  const id = await bench.create({ client_tools: [TOOL], ...fields })
  const conversation = await bench.manager.open(id)
  await conversation.post(userText('go', true))
  return { store, bench, conversation }
}

const answer = ({ requests }: Conversation, requestId: string) =>
  requests.answer(requestId, { kind: 'client_tool', output: 'found', is_error: false })

test('hooks that come while a call rests are not asked about it', async () => {
  const script = [{ calls: [call('look_up', { n: 1 })] }, { text: 'Done.' }]
  const { bench, conversation } = await setScene({ script, deps: { clientTools: { restAfterMs: 20 } } })
  await using _ = bench
  const { request_id } = await untilOpen(conversation, 'client_tool')
  await expect.poll(() => conversation.state.status).toBe('waiting_for_client')
  await conversation.clientHooks.register('policy', { hooks: { PreToolUse: [{ hooks: [{ id: 'guard' }] }] } })
  await answer(conversation, request_id)
  await expect.poll(() => conversation.state.status === 'idle' || openOf(conversation, 'hook').length > 0).toBe(true)
  expect(openOf(conversation, 'hook')).toEqual([])
  const [result] = only(await eventsOf(conversation), 'ToolResult')
  expect(result).toMatchObject({ output: 'found', is_error: false })
})

/** Sets a time limit that has passed already. Resolves when the end of its calls is being stored, which then takes a while. */
async function reachLimit(bench: Bench, { id }: Conversation, store: ReturnType<typeof mortalStore>): Promise<void> {
  const { promise: ending, resolve } = Promise.withResolvers<void>()
  let isLimitStored = false
  store.fault = () => {
    if (isLimitStored) return (resolve(), 'slow')
    isLimitStored = true
    return undefined
  }
  await bench.configure(id, { max_seconds_per_run: 0.001 })
  await ending
}

test('a call that a time limit ends takes no answer any more', async () => {
  const script = [{ calls: [call('look_up')] }, { text: 'Done.' }]
  const { bench, conversation, store } = await setScene({ script })
  await using _ = bench
  const { request_id } = await untilOpen(conversation, 'client_tool')
  // The end of the call takes its time on the disk; the client answers then.
  await reachLimit(bench, conversation, store)
  await expect(answer(conversation, request_id)).rejects.toMatchObject({ code: 'request_closed' })
  await expect.poll(() => conversation.state.status).toBe('error')
})

test('a resting call of a subagent that a time limit ends takes no answer any more', async () => {
  const busy = gate('Busy')
  const deps = {
    clientTools: { restAfterMs: 20 },
    createTools: (names: readonly string[], { subagents }: { subagents: TaskAccess }) =>
      names.length > 0 ? [busy.tool, createTask(subagents)] : [],
  }
  const task = (prompt: string) => call('Task', { description: 'x', prompt, subagent_type: 'general-purpose' })
  const script: BenchOptions['script'] = ({ text }) => {
    if (!text.includes('You are a subagent')) return { calls: [task('look it up'), task('be busy')] }
    return { calls: [text.includes('be busy') ? call('Busy') : call('look_up')] }
  }
  const { bench, conversation, store } = await setScene({ script, deps }, { tools: ['Task'] })
  await using _ = bench
  const { request_id } = await untilOpen(conversation, 'client_tool')
  await busy.entered
  await reachLimit(bench, conversation, store)
  await expect(answer(conversation, request_id)).rejects.toMatchObject({ code: 'request_closed' })
  await expect.poll(() => conversation.state.status).toBe('error')
})

test('a subagent that is rejected does not continue, and the call that a client executes for another one waits on', async () => {
  const ask = tool('Ask', () => ({ output: 'asked' }))
  const deps = {
    createTools: (names: readonly string[], { subagents }: { subagents: TaskAccess }) =>
      names.length > 0 ? [ask, createTask(subagents)] : [],
  }
  const task = (prompt: string) => call('Task', { description: 'x', prompt, subagent_type: 'general-purpose' })
  let isFirst = true
  const script: BenchOptions['script'] = ({ text }) => {
    if (text.includes('You are a subagent')) return { calls: [text.includes('do ask') ? call('Ask') : call('look_up')] }
    if (!isFirst) return { text: 'Done.' }
    isFirst = false
    return { calls: [task('look it up'), task('do ask')] }
  }
  const rules = { permission_mode: 'default', permission_rules: { allow: ['look_up', 'Task'] } }
  const { bench, conversation } = await setScene({ script, deps }, { tools: ['Task'], ...rules })
  await using _ = bench
  // The call waits inside the run: both subagents are blocked, and the status is still `running`.
  const { request_id } = await untilOpen(conversation, 'client_tool')
  await untilOpen(conversation, 'permission')
  await conversation.permissions.reject('no')
  expect(conversation.requests.list()).toMatchObject([{ request_id }])
  await answer(conversation, request_id)
  await expect.poll(() => openOf(conversation, 'client_tool').length).toBe(1)
  await conversation.pause({ interrupt: true })
  const events = await eventsOf(conversation)
  // Of the first two, either subagent may be the faster one.
  const kinds = only(events, 'RequestOpened').map(({ kind }) => kind)
  expect([kinds.slice(0, 2).toSorted(), kinds.slice(2)]).toEqual([['client_tool', 'permission'], ['client_tool']])
  expect(only(events, 'ToolResult').map(({ error_type }) => error_type)).toContain('rejected')
})

test('what only clients execute cannot be rejected', async () => {
  const deps = {
    createTools: (names: readonly string[], { subagents }: { subagents: TaskAccess }) =>
      names.length > 0 ? [createTask(subagents)] : [],
  }
  const script: BenchOptions['script'] = ({ text }) =>
    text.includes('You are a subagent')
      ? { calls: [call('look_up')] }
      : { calls: [call('Task', { description: 'x', prompt: 'look', subagent_type: 'general-purpose' })] }
  const { bench, conversation } = await setScene({ script, deps }, { tools: ['Task'] })
  await using _ = bench
  const { request_id } = await untilOpen(conversation, 'client_tool')
  await expect(conversation.permissions.reject('no')).rejects.toMatchObject({ code: 'nothing_pending' })
  expect(openOf(conversation, 'client_tool')).toMatchObject([{ request_id }])
})
