/** The instructions of a run, and how its model answers, hold until the run ends: through restarts, decisions and subagents. */
import { expect, test } from 'vitest'
import { RunRequest } from '../../src/contract/run.ts'
import type { Conversation } from '../../src/conversations/conversation.ts'
import type { Script } from '../../src/llm/scripted/script.ts'
import { createTask } from '../../src/tools/task/task.ts'
import { approvalsOf } from '../support/answering.ts'
import { setBackground } from './background-scene.ts'
import type { Bench, BenchOptions } from './fixtures.ts'
import { call, endOf, eventsOf, gate, only, say, setBench, tool, until, userText } from './fixtures.ts'

const act = tool('Act', () => ({ output: 'acted' }))
const OPTIONS = { instructions: 'Answer in French.', temperature: 0.2, max_output_tokens: 77, reasoning_effort: 'low' }

async function runWith(conversation: Conversation, options: object = OPTIONS) {
  await conversation.post(userText('go', false))
  return await conversation.run(RunRequest.parse(options))
}

/** Returns, for each request to the model, whether it has the instructions, and its temperature. */
const asked = ({ model }: Pick<Bench, 'model'>) =>
  model.requests.map(({ text, body }) => [text.includes('Answer in French.'), body['temperature']])

const HAS = [true, 0.2]
const LACKS = [false, undefined]

test('each step of a run has them, also after a restart while it waits for a decision', async () => {
  const script = [{ calls: [call('Act')] }, { calls: [call('Act')] }, { text: 'Done.' }, { text: 'Next.' }]
  await using bench = await setBench({ tools: [act], script })
  const conversation = await bench.converse({ permission_mode: 'default' })
  const runId = await runWith(conversation)
  await until(conversation, 'RequestOpened')
  await bench.restart()
  const again = await bench.manager.open(conversation.id)
  for (const _ of [1, 2]) {
    await expect.poll(() => again.state.status).toBe('waiting_for_confirmation')
    const { pending, approve } = approvalsOf(again)
    await approve(pending().items[0]!.request_id)
  }
  await endOf(again, runId)
  await say(again)
  expect(asked(bench)).toEqual([HAS, HAS, HAS, LACKS])
})

test('a run that a restart cut off is resumed with them', async () => {
  const slow = gate('Slow')
  await using bench = await setBench({ tools: [slow.tool], script: [{ calls: [call('Slow')] }, { text: 'Done.' }] })
  const conversation = await bench.converse({ permission_mode: 'bypass', resume_on_start: true })
  await runWith(conversation)
  await slow.entered
  await bench.restart({ kill: true })
  const again = await bench.manager.open(conversation.id)
  await expect.poll(() => again.state.status).toBe('idle')
  expect(asked(bench)).toEqual([HAS, HAS])
  const starts = only(await eventsOf(again), 'StatusUpdate').filter(({ temperature }) => temperature !== undefined)
  expect(starts).toMatchObject([OPTIONS, OPTIONS])
})

test('a change of llm_config during the run takes precedence, and the instructions stay', async () => {
  const slow = gate('Slow')
  await using bench = await setBench({ tools: [slow.tool], script: [{ calls: [call('Slow')] }, { text: 'Done.' }] })
  const conversation = await bench.converse({ permission_mode: 'bypass' })
  const runId = await runWith(conversation)
  await slow.entered
  await conversation.configure({ llm_config: { temperature: 1 } })
  slow.open()
  await endOf(conversation, runId)
  expect(asked(bench)).toEqual([HAS, [true, 1]])
})

test('another model and the other options hold together', async () => {
  await using bench = await setBench({ script: [{ text: 'One.' }, { text: 'Two.' }] })
  const conversation = await bench.converse({ llm_config: { ...llmOf(bench), temperature: 1 } })
  await endOf(conversation, await runWith(conversation, { ...OPTIONS, model: 'other' }))
  await say(conversation)
  expect(bench.model.requests.map(({ body }) => [body['model'], body['temperature']])).toEqual([
    ['other', 0.2],
    ['scripted', 1],
  ])
})

const llmOf = (bench: Bench) => ({ model: 'scripted', base_url: bench.model.baseUrl, api_key: 'sk-1' })

test('secrets in the instructions are redacted', async () => {
  await using bench = await setBench({ script: [{ text: 'One.' }] })
  const conversation = await bench.converse({ secrets: { TOKEN: 'the-token-of-a-client-17' } })
  await endOf(conversation, await runWith(conversation, { instructions: 'Use the-token-of-a-client-17.' }))
  expect(bench.model.requests[0]!.text).toContain('Use <secret:TOKEN>.')
  expect(JSON.stringify(await eventsOf(conversation))).not.toContain('the-token-of-a-client-17')
})

test('a subagent of the run answers as the run says, and does not read its instructions', async () => {
  const start = { description: 'x', prompt: 'be quick', subagent_type: 'worker' }
  const script: Script = ({ messages, text }) => {
    if (text.includes('You are a worker')) return { text: 'It ran.' }
    return messages.at(-1)?.role === 'tool' ? { text: 'Done.' } : { calls: [call('Task', start)] }
  }
  const deps: BenchOptions['deps'] = {
    createTools: (names, { subagents }) => (names.includes('Task') ? [createTask(subagents)] : []),
  }
  await using bench = await setBench({ deps, script })
  const agents = { worker: { description: 'Works.', prompt: 'You are a worker.' } }
  const conversation = await bench.converse({ agents, permission_mode: 'bypass' })
  await endOf(conversation, await runWith(conversation))
  expect(asked(bench)).toEqual([HAS, [false, 0.2], HAS])
})

test('a run that a subagent in the background starts continues with them', async () => {
  await using scene = await setBackground()
  const { conversation, slow } = scene
  await endOf(conversation, await runWith(conversation))
  await slow.entered
  slow.open('through')
  const starts = async () => only(await eventsOf(conversation), 'StatusUpdate').filter(({ temperature }) => temperature)
  await expect.poll(starts).toMatchObject([{ reason: 'run' }, { reason: 'subagent', ...OPTIONS }])
})

test('a summary reads the instructions, and is not limited as the answers of the run are', async () => {
  const script: Script = ({ text }) => {
    if (text.includes('Write a summary')) return { text: 'They talked.' }
    return text.includes('They talked.') ? { text: 'Done.' } : { text: 'words '.repeat(300), calls: [call('Act')] }
  }
  const loud = tool('Act', () => ({ output: 'acted '.repeat(300) }))
  await using bench = await setBench({ tools: [loud], script })
  const llm_config = { ...llmOf(bench), context_window: 8000, max_output_tokens: 500 }
  const compaction = { threshold: 0.5 }
  const conversation = await bench.converse({ llm_config, compaction, permission_mode: 'bypass' })
  await endOf(conversation, await runWith(conversation))
  const limits = bench.model.requests.map(({ text, body }) => [
    text.includes('Write a summary'),
    body['max_completion_tokens'] ?? body['max_tokens'],
  ])
  expect(limits).toContainEqual([true, 500])
  expect(limits.filter(([isSummary]) => isSummary !== true).every(([, limit]) => limit === 77)).toBe(true)
  expect(asked(bench).every(([hasInstructions]) => hasInstructions)).toBe(true)
})
