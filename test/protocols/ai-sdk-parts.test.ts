/** The UI message stream: what waits within a subagent, and the files of a message. */
import { lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai'
import type { UIMessage } from 'ai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { setStage } from '../support/agent.ts'
import { createPlanner, task } from '../support/subagents.ts'
import { chatOf, plainMessages, storedMessages, uiTextOf } from '../support/ui-chat.ts'

const planner = createPlanner()
const stage = await setStage((question) => planner.script(question))
afterAll(() => stage[Symbol.asyncDispose]())
const { server } = stage
const { url } = server
const PROFILE = 'workers'
const WORKER = { description: 'Works.', prompt: 'You are a worker.', tools: ['Bash'] }
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

beforeAll(async () => {
  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
  const tools = ['Bash', 'Task']
  const { status } = await server.call('PUT', `/profiles/${PROFILE}`, { tools, agents: { worker: WORKER }, llm_config })
  expect(status).toBe(201)
})
afterAll(async () => {
  const { items } = (await server.call('GET', '/conversations')).body
  for (const { id } of items) await server.call('DELETE', `/conversations/${id}`)
  await server.call('DELETE', `/profiles/${PROFILE}`)
})

test('a call of a subagent waits as a part of the answer, for one decision', async () => {
  planner.plan = {
    'Send the worker': [{ calls: [task('Touch it.')] }, { text: 'The worker has ended.' }],
    'Touch it': [
      { calls: [{ name: 'Bash', arguments: { command: 'touch one' } }] },
      { calls: [{ name: 'Bash', arguments: { command: 'touch two' } }] },
      { text: 'Touched.' },
    ],
  }
  const sendAutomaticallyWhen = lastAssistantMessageIsCompleteWithApprovalResponses
  const chat = chatOf({ url, id: 'subagent', body: { profile: PROFILE }, chat: { sendAutomaticallyWhen } })
  await chat.sendMessage({ text: 'Send the worker' })
  for (const approved of [true, false]) {
    await expect.poll(() => waitingIn(chat.messages).length).toBe(1)
    await expect.poll(() => chat.status).toBe('ready')
    expect(await storedMessages({ url, id: 'subagent' })).toEqual(plainMessages(chat.messages))
    await chat.addToolApprovalResponse({ id: waitingIn(chat.messages)[0]!, approved })
  }
  await expect.poll(() => uiTextOf(chat.messages[1])).toBe('The worker has ended.')
  await expect.poll(() => chat.status).toBe('ready')
  expect(chat.messages[1]!.parts.filter(({ type }) => type === 'dynamic-tool')).toMatchObject([
    { toolName: 'Task', state: 'output-available' },
    { toolName: 'Bash', state: 'output-available', output: 'Allowed.' },
    { toolName: 'Bash', state: 'output-denied' },
  ])
  expect(await storedMessages({ url, id: 'subagent' })).toEqual(plainMessages(chat.messages))
})

const waitingIn = (messages: readonly UIMessage[]): string[] =>
  (messages[1]?.parts ?? []).flatMap((part) =>
    part.type === 'dynamic-tool' && part.state === 'approval-requested' ? [part.approval.id] : [],
  )

test('a call that waits for the decision about another one does not hold the decision up', async () => {
  const calls = ['touch three', 'echo four'].map((command) => ({ name: 'Bash', arguments: { command } }))
  planner.plan = { 'Do both': [{ text: 'Both.', calls }, { text: 'Done.' }] }
  const sendAutomaticallyWhen = lastAssistantMessageIsCompleteWithApprovalResponses
  const chat = chatOf({ url, id: 'mixed', body: { profile: PROFILE }, chat: { sendAutomaticallyWhen } })
  await chat.sendMessage({ text: 'Do both' })
  const [step, call] = [{ type: 'step-start' }, { type: 'dynamic-tool' }]
  expect(chat.messages[1]!.parts).toMatchObject([step, { type: 'text' }, call, step, { state: 'approval-requested' }])
  await chat.addToolApprovalResponse({ id: waitingIn(chat.messages)[0]!, approved: true })
  await expect.poll(() => uiTextOf(chat.messages[1])).toBe('Both.|Done.')
  await expect.poll(() => chat.status).toBe('ready')
  expect(await storedMessages({ url, id: 'mixed' })).toEqual(plainMessages(chat.messages))
})

test('images and texts are read by the model, and are in the stored message', async () => {
  planner.plan = { 'See these': [{ text: 'Seen.' }] }
  const chat = chatOf({ url, id: 'files', body: { profile: PROFILE } })
  const image = { type: 'file' as const, mediaType: 'image/png', url: `data:image/png;base64,${PIXEL}` }
  const text = { type: 'file' as const, mediaType: 'text/csv', filename: 'a.csv', url: 'data:text/csv,a%2Cb' }
  await chat.sendMessage({ text: 'See these', files: [image, text] })
  expect(uiTextOf(chat.messages[1])).toBe('Seen.')
  expect(JSON.stringify(planner.seen.at(-1)!.messages)).toContain(PIXEL)
  const [stored] = await storedMessages({ url, id: 'files' })
  expect(stored!.parts).toEqual([image, { type: 'text', text: 'a.csv:\na,b' }, { type: 'text', text: 'See these' }])
  await chat.sendMessage({ text: 'See these', files: [{ ...text, url: 'data:text/csv,%E0%A4%A' }] })
  expect(chat.error?.message).toContain('must be a data URL')
})
