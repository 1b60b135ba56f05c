/** A subagent in the background that waits for somebody when the server stops: nothing of it is lost. */
import { expect, test } from 'vitest'
import type { ClientTool } from '../../src/contract/client-tools/client-tool.ts'
import type { Conversation } from '../../src/conversations/conversation.ts'
import type { Script } from '../../src/llm/scripted/script.ts'
import { createTask } from '../../src/tools/task/task.ts'
import { approvalsOf, untilOpen } from '../support/answering.ts'
import type { Bench, BenchOptions } from './fixtures.ts'
import { call, eventsOf, only, setBench, tool, userText } from './fixtures.ts'
import { mortalStore } from './mortal-store.ts'

const LOOK_UP: ClientTool = { name: 'look_up', description: 'Looks up.', input_schema: { type: 'object' } }

/** The main agent starts a worker in the background, and the worker calls this tool. */
async function setWaiting(
  calls: string,
): Promise<{ bench: Bench; conversation: Conversation; die: () => Promise<void> }> {
  const start = { description: 'x', prompt: 'be quick', subagent_type: 'worker', run_in_background: true }
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
  store.home.directory = `${bench.dataDir}/sessions`
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
  return { bench, conversation, die: store.die }
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
