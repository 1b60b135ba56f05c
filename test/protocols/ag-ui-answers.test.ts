/** What clients of AG-UI answer: nothing is decided that the user did not decide, and nothing is half-done. */
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Interrupt } from '@ag-ui/client'
import type { ScriptedTurn } from '../../src/llm/scripted/script.ts'
import { Page } from '../support/ag-ui-page.ts'
import { setStageHere } from '../support/agent.ts'
import { KEY } from '../support/server.ts'

const ROOT = join(import.meta.dirname, '../..')
const CHILDREN = join(ROOT, 'test/mcp/children')

const stage = await setStageHere(
  ({ body: { messages } }): ScriptedTurn => {
    const last = messages.at(-1)
    const said = JSON.stringify(last?.content)
    if (last?.role === 'tool') return { text: `Read: ${said}` }
    if (said.includes('ask me')) return { calls: [{ name: 'mcp__odd__ask', arguments: {} }] }
    const commands = [...said.matchAll(/touch \w+/g)].map(([command]) => ({ name: 'Bash', arguments: { command } }))
    if (commands.length > 0) return { calls: commands }
    if (said.includes('look up')) return { calls: [{ name: 'look_up', arguments: {} }] }
    return { text: 'Well.' }
  },
  { OPENHANDS_SANDBOX_READABLE: [join(ROOT, 'node_modules'), CHILDREN].join(':') },
)
afterAll(() => stage[Symbol.asyncDispose]())
const { server } = stage

beforeAll(async () => {
  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
  const mcp = { mcpServers: { odd: { command: process.execPath, args: [join(CHILDREN, 'odd-server.ts')] } } }
  const profile = { tools: ['Bash'], llm_config, mcp, permission_mode: 'bypass' }
  expect(await server.call('PUT', '/profiles/forms', profile)).toMatchObject({ status: 201 })
  const command = 'if grep -q blocked; then echo "Not that." >&2; exit 2; fi'
  const hooks = { UserPromptSubmit: [{ hooks: [{ type: 'command', command }] }] }
  expect(await server.call('PUT', '/profiles/coder', { tools: ['Bash'], llm_config, hooks })).toMatchObject({
    status: 201,
  })
})

const LOOK_UP = { name: 'look_up', description: 'Looks up an order.', parameters: { type: 'object', properties: {} } }

const pageOf = (threadId: string) => new Page(server.url, threadId, KEY)

async function viewOf(threadId: string) {
  const { items } = (await server.call('GET', '/conversations?limit=200')).body
  return items.find(({ external_id }: { external_id?: string }) => external_id === threadId)
}

async function eventsOf(threadId: string, type: string) {
  return await stage.events((await viewOf(threadId)).id, `types=${type}`)
}

const send = (threadId: string, body: object) =>
  server.call('POST', '/ag-ui/coder', { threadId, runId: 'run', messages: [], ...body })

const user = (id: string, content: unknown) => ({ id, role: 'user', content })

const approve = (interrupts: readonly Interrupt[], more: object = {}) =>
  interrupts.map(({ id }) => ({ interruptId: id, status: 'resolved' as const, payload: { approved: true, ...more } }))

test('a form of an MCP server that the user cancels is declined', async () => {
  const page = new Page(server.url, 'forms', KEY, 'forms')
  const asked = await page.say('ask me')
  const [{ id: interruptId }] = asked.interrupts as [Interrupt]
  await page.run({ resume: [{ interruptId, status: 'cancelled' }] })
  expect(page.text.at(-1)).toContain('decline')
  expect(page.text.at(-1)).not.toContain('answered')
})

test('a request of which one part is refused decides and changes nothing', async () => {
  const page = pageOf('refused')
  const { interrupts } = await page.say('touch one, touch two')
  const [one, two] = interrupts as [Interrupt, Interrupt]
  const wrong = [...approve([one]), ...approve([two], { editedArgs: { command: 5 } })]
  const messages = [...page.agent.messages, user('more', 'This is blocked.')]
  for (const [body, status] of [
    [{ resume: wrong, messages: page.agent.messages }, 400],
    [{ resume: approve(interrupts), messages }, 403],
  ] as const)
    expect(await send('refused', { ...body, tools: [LOOK_UP] })).toMatchObject({ status })
  expect(await eventsOf('refused', 'RequestAnswered,ConfigUpdate,MessageWithdrawn')).toEqual([])
  expect((await page.run({ resume: approve(interrupts) })).outcome).toBe('success')
})

test('messages of which one is blocked are not posted, and the tools stay', async () => {
  await pageOf('blocked').say('hello')
  const messages = [user('a', 'first'), user('b', 'This is blocked.')]
  for (const some of [messages, messages.slice(1)])
    expect(await send('blocked', { messages: some, tools: [LOOK_UP] })).toMatchObject({ status: 403 })
  expect(await eventsOf('blocked', 'UserMessage,ConfigUpdate')).toHaveLength(1)
})

test('an answer continues a run that was paused while it waited', async () => {
  const page = pageOf('paused')
  const asked = await page.say('touch three')
  const pause = async () => server.call('POST', `/conversations/${(await viewOf('paused')).id}/pause`)
  expect(await pause()).toMatchObject({ body: { status: 'paused' } })
  expect((await page.run({ resume: approve(asked.interrupts) })).outcome).toBe('success')
  expect(page.text.at(-1)).toContain('Read:')
  const waiting = await page.say('look up', { tools: [LOOK_UP] })
  await pause()
  const [toolCallId] = waiting.last.outcome.pendingToolCallIds
  page.agent.addMessage({ id: 'result', role: 'tool', toolCallId, content: 'order 17' })
  expect((await page.run({ tools: [LOOK_UP] })).outcome).toBe('success')
  expect(page.text.at(-1)).toContain('order 17')
})
