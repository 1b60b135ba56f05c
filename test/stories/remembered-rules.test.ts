/** What a decision adds to the rules of a conversation can be read again, whatever the agent has called. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { setStage } from '../support/agent.ts'
import { decisionsFor } from '../support/answering-over-http.ts'
import { answer, requestsOf } from './requests.ts'

let stage: Stage
let turn: { calls: { name: string; arguments: Record<string, unknown> }[] }

beforeAll(async () => {
  stage = await setStage(({ body }) => (body.messages.at(-1)?.role === 'tool' ? { text: 'Done.' } : turn), {})
})
afterAll(() => stage[Symbol.asyncDispose]())

const client_tools = [{ name: '9lives', description: 'Counts lives.', input_schema: { type: 'object' } }]

async function callAndWait(name: string, args: Record<string, unknown>) {
  turn = { calls: [{ name, arguments: args }] }
  const id = await stage.create({ permission_mode: 'default', tools: ['Bash', 'Write'], client_tools })
  const { call } = stage.server
  await call('POST', `/conversations/${id}/messages`, { message: { role: 'user', content: 'go' }, run: true })
  await expect.poll(() => requestsOf(call, id, 'permission')).toHaveLength(1)
  const [request] = await requestsOf(call, id, 'permission')
  const decide = (remember: boolean) =>
    answer(call, id, request.request_id, decisionsFor(request, { behavior: 'allow', remember }))
  return { id, decide, rules: request.payload.tool_uses[0].rules }
}

test.each([
  ['a command', 'Bash', { command: `touch ${'d/'.repeat(600)}` }],
  ['a path', 'Write', { file_path: `/tmp/${'d/'.repeat(600)}x`, content: 'x' }],
])('%s that is longer than a rule may be cannot be remembered, and can still be decided', async (_, name, args) => {
  const { id, decide, rules } = await callAndWait(name, args)
  expect(rules).toBeUndefined()
  expect(await decide(true)).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
  expect((await decide(false)).status).toBe(200)
  await expect.poll(async () => (await stage.server.call('GET', `/conversations/${id}`)).body.status).toBe('idle')
})

test('a tool of a client whose name begins with a digit can be in a rule, also after a restart', async () => {
  const { call, restart } = stage.server
  const { id, decide, rules } = await callAndWait('9lives', {})
  expect(rules).toEqual(['9lives'])
  expect((await decide(true)).status).toBe(200)
  await restart('SIGKILL')
  const { body } = await call('GET', `/conversations/${id}/permission-rules`)
  expect(body).toMatchObject({ allow: rules })
  expect((await call('PUT', `/conversations/${id}/permission-rules`, body)).status).toBe(200)
})
