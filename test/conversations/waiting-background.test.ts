/** A subagent that waits for somebody, or has its answer, when the server stops: nothing of it is lost. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { ClientTool } from '../../src/contract/client-tools/client-tool.ts'
import type { Conversation } from '../../src/conversations/conversation.ts'
import type { Script } from '../../src/llm/scripted/script.ts'
import { createTask } from '../../src/tools/task/task.ts'
import { approvalsOf, untilOpen } from '../support/answering.ts'
import type { Bench, BenchOptions } from './fixtures.ts'
import { call, eventsOf, only, setBench, tool, userText } from './fixtures.ts'
import type { MortalStore } from './mortal-store.ts'
import { mortalStore } from './mortal-store.ts'

const LOOK_UP: ClientTool = { name: 'look_up', description: 'Looks up.', input_schema: { type: 'object' } }

/** The main agent starts a worker, in the background or not, and the worker calls this tool. */
async function setWaiting(
  calls: string,
  isBackground = true,
): Promise<{ bench: Bench; conversation: Conversation; die: () => Promise<void>; store: MortalStore }> {
  const start = { description: 'x', prompt: 'be quick', subagent_type: 'worker', run_in_background: isBackground }
  const script: Script = ({ text }) => {
    if (text.includes('You are a worker'))
      return text.includes('it is there') ? { text: 'It ran.' } : { calls: [call(calls)] }
    if (text.includes('It ran.')) return { text: 'Done.' }
    return text.includes('works in the background. A message') ? { text: 'Begun.' } : { calls: [call('Task', start)] }
  }
  const act = tool('Act', () => ({ output: 'it is there' }))
  const deps: BenchOptions['deps'] = {
    createTools: (names, { subagents }) => [act, ...(names.includes('Task') ? [createTask(subagents)] : [])],
  }
  const store = mortalStore()
  const bench = await setBench({ deps, script, logs: store })
  const agents = { worker: { description: 'Works.', prompt: 'You are a worker.' } }
  const fields = {
    tools: ['Task'],
    agents,
    client_tools: [LOOK_UP],
    permission_mode: 'default',
    allowed_tools: ['Task'],
  }
  const conversation = await bench.converse({ ...fields, permission_rules: { allow: ['look_up'], ask: [], deny: [] } })
  await conversation.post(userText('go', true))
  return { bench, conversation, die: store.die, store }
}

const finalTexts = async (conversation: Conversation) =>
  only(await eventsOf(conversation), 'Result').map(({ final_text }) => final_text)

test.each(['kill', 'stop'])(
  'a call of a client tool survives a %s, and its result continues the subagent',
  async (how) => {
    const { bench, conversation, die } = await setWaiting('look_up')
    await using _ = bench
    const { request_id } = await untilOpen(conversation, 'client_tool')
    await expect.poll(() => conversation.state.status).toBe('idle')
    await bench.restart(how === 'kill' ? { kill: true, between: die } : {})
    const again = await bench.manager.open(conversation.id)
    bench.manager.hold(conversation.id)
    expect((await untilOpen(again, 'client_tool')).request_id).toBe(request_id)
    expect(again.state.status).toBe('idle')
    await again.requests.answer(request_id, { kind: 'client_tool', output: 'it is there', is_error: false })
    await expect.poll(() => finalTexts(again)).toEqual(['Begun.', 'It ran.', 'Done.'])
  },
)

test.each(['kill', 'stop'])('a permission survives a %s, and its decision continues the subagent', async (how) => {
  const { bench, conversation, die } = await setWaiting('Act')
  await using _ = bench
  const { request_id } = await untilOpen(conversation, 'permission')
  await expect.poll(() => conversation.state.status).toBe('idle')
  await bench.restart(how === 'kill' ? { kill: true, between: die } : {})
  const again = await bench.manager.open(conversation.id)
  bench.manager.hold(conversation.id)
  await approvalsOf(again).approve(request_id)
  await expect.poll(() => finalTexts(again)).toEqual(['Begun.', 'It ran.', 'Done.'])
})

/** Answers the call of the client, and kills the server when the answer is stored: nothing else is. */
async function killAtAnswer({ bench, conversation, store }: Awaited<ReturnType<typeof setWaiting>>): Promise<void> {
  const { request_id } = await untilOpen(conversation, 'client_tool')
  conversation.log.subscribe({
    onEvents: (events) => {
      if (events.some(({ event }) => event.type === 'RequestAnswered')) store.fault = () => 'storage_failed'
    },
  })
  await conversation.requests.answer(request_id, { kind: 'client_tool', output: 'it is there', is_error: false })
  const revive = async () => {
    await store.die()
    store.fault = () => undefined
  }
  await bench.restart({ kill: true, between: revive })
}

/** True if the next start of the server opens the conversation by itself. */
const isMarked = async ({ dataDir }: Bench, id: string) => (await readdir(join(dataDir, 'active'))).includes(id)

test('a subagent in the background that is killed with its answer continues with it, and nobody has to ask', async () => {
  const scene = await setWaiting('look_up')
  await using bench = scene.bench
  const { id } = scene.conversation
  await untilOpen(scene.conversation, 'client_tool')
  await expect.poll(() => scene.conversation.state.status).toBe('idle')
  await bench.restart({ kill: true, between: scene.die })
  // What waits for somebody needs no start of the server.
  await expect.poll(() => isMarked(bench, id)).toBe(false)
  bench.manager.hold(id)
  await killAtAnswer({ ...scene, conversation: await bench.manager.open(id) })
  await expect.poll(() => isMarked(bench, id)).toBe(false)
  const again = await bench.manager.open(id)
  expect(await finalTexts(again)).toEqual(['Begun.', 'It ran.', 'Done.'])
})

test('a subagent that is killed with its answer stays, and the next run continues it', async () => {
  const scene = await setWaiting('look_up', false)
  await using bench = scene.bench
  await killAtAnswer(scene)
  const again = await bench.manager.open(scene.conversation.id)
  bench.manager.hold(scene.conversation.id)
  expect(again.state).toMatchObject({ status: 'paused', reason: 'server_restart', subagents: [{ name: 'worker' }] })
  await again.run()
  await expect.poll(() => again.state.status).toBe('idle')
  expect(await finalTexts(again)).toEqual(['', 'It ran.', 'Done.'])
})

test('a pause ends the call of a subagent in the background, which does not continue with that', async () => {
  const { bench, conversation, store } = await setWaiting('look_up')
  await using _ = bench
  await untilOpen(conversation, 'client_tool')
  await expect.poll(() => conversation.state.status).toBe('idle')
  const asked = bench.model.requests.length
  // The subagent could ask the model between the end of its call and that of the pause.
  store.fault = () => 'slow'
  await conversation.pause({ interrupt: true })
  expect(only(await eventsOf(conversation), 'Result').at(-1)).toMatchObject({ stop_reason: 'cancelled', steps: 1 })
  expect(bench.model.requests).toHaveLength(asked)
})
