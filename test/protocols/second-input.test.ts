/**
 * A second message while the agent works, or while something waits, by each protocol: it steers where the protocol has a
 * word for it. Otherwise it is 409 and is not stored, with `Retry-After` if the agent ends by itself.
 */
import { afterAll, expect, test } from 'vitest'
import type { ScriptedQuestion, ScriptedTurn } from '../../src/llm/scripted/script.ts'
import { setStageHere } from '../support/agent.ts'
import { ASKS } from '../support/asked-question.ts'
import { KEY } from '../support/server.ts'
import { connect } from '../support/socket.ts'
import { until } from '../support/until.ts'

const PROTOCOLS = 'openai,ai-sdk,ag-ui,mcp,acp,a2a'
const stage = await setStageHere(({ body }) => turnFor(body), { OPENHANDS_PROTOCOLS: PROTOCOLS })
afterAll(() => stage[Symbol.asyncDispose]())
const { server } = stage
const LLM = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
await server.call('PUT', '/profiles/default', { tools: ['Bash', 'AskUserQuestion'], llm_config: LLM })

const FIRST: Readonly<Record<string, ScriptedTurn>> = {
  work: { text: 'and so on '.repeat(400), chunk_delay_ms: 60 },
  permission: { calls: [{ name: 'Bash', arguments: { command: 'touch it' } }] },
  question: ASKS,
  client_tool: { calls: [{ name: 'look_up', arguments: {} }] },
}

function turnFor({ messages }: ScriptedQuestion['body']): ScriptedTurn {
  const last = messages.at(-1)
  const said = JSON.stringify(last?.content ?? '')
  return (
    (last?.role === 'user' && FIRST[Object.keys(FIRST).find((name) => said.includes(`first ${name}`)) ?? '']) || {
      text: 'Read.',
    }
  )
}

const NEEDS = {
  work: 'running',
  permission: 'waiting_for_confirmation',
  question: 'waiting_for_input',
  client_tool: 'waiting_for_client',
}
const LOOK_UP = { name: 'look_up', description: 'Looks up.', input_schema: { type: 'object' } }
const SECOND = 'And this.'

type State = keyof typeof NEEDS

/** The conversation of a chat that is in a state. */
async function begin(state: State) {
  const external_id = crypto.randomUUID()
  const { body } = await server.call('POST', '/conversations', {
    profile: 'default',
    external_id,
    client_tools: [LOOK_UP],
    permission_mode: state === 'permission' ? 'default' : 'bypass',
  })
  const path = `/conversations/${body.id}`
  await server.call('POST', `${path}/messages`, { message: `first ${state}`, run: true })
  await until(`it has ${state}`, async () => (await server.call('GET', path)).body.status === NEEDS[state])
  return { id: body.id as string, external_id, first: `first ${state}` }
}

type Place = Awaited<ReturnType<typeof begin>>
async function post(path: string, body: object, headers: Record<string, string> = {}): Promise<Reply> {
  const response = await fetch(server.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  const { status } = response
  // A stream ends with the turn.
  await response.body?.cancel()
  return { status, retryAfter: response.headers.get('retry-after') }
}

const user = (content: string) => ({ role: 'user', content })

type Reply = { readonly status: number; readonly retryAfter: string | null }

const SENDERS = {
  Responses: async ({ id }: Place) => {
    const conversation = `conv_${id.replaceAll('-', '')}`
    return await post('/v1/responses', { model: 'default', stream: true, conversation, input: SECOND })
  },
  'Chat Completions': async ({ external_id, first }: Place) => {
    const body = { model: 'default', stream: true, messages: [user(first), user(SECOND)] }
    return await post('/v1/chat/completions', body, { 'x-conversation-id': external_id })
  },
  'AI SDK': async ({ external_id: id }: Place) => {
    const message = { id: crypto.randomUUID(), role: 'user', parts: [{ type: 'text', text: SECOND }] }
    return await post('/ai/chat', { id, messages: [message], trigger: 'submit-message' })
  },
  'AG-UI': async ({ external_id: threadId }: Place) => {
    const messages = [{ id: crypto.randomUUID(), ...user(SECOND) }]
    return await post('/ag-ui/default', { threadId, runId: crypto.randomUUID(), messages })
  },
  'A2A, the context': async ({ external_id: contextId }: Place) => await postTask({ contextId }),
  'A2A, the task': async (place: Place) => await postTask({ taskId: await taskOf(place) }),
  MCP: async ({ id: conversation_id }: Place) => {
    const params = { name: 'continue_agent', arguments: { conversation_id, prompt: SECOND, wait_seconds: 0 } }
    const accept = 'application/json, text/event-stream'
    return await post('/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params }, { accept })
  },
  'ACP 1': async (place: Place) => await prompt(1, place),
  'ACP 2': async (place: Place) => await prompt(2, place),
}

const postTask = async (more: object) =>
  await post(
    '/a2a/v1/message:send',
    {
      message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text: SECOND }], ...more },
      configuration: { returnImmediately: true },
    },
    { 'a2a-version': '1.0' },
  )

async function taskOf({ external_id }: Place): Promise<string> {
  const response = await fetch(`${server.url}/a2a/v1/tasks?contextId=${external_id}`, {
    headers: { authorization: `Bearer ${KEY}`, 'a2a-version': '1.0' },
  })
  return JSON.parse(await response.text()).tasks[0].id
}

/** JSON-RPC over the socket of editors. In version 1 the answer comes with the end of the turn. */
async function prompt(version: 1 | 2, { id }: Place): Promise<Reply> {
  const { workdir: cwd } = (await server.call('GET', `/conversations/${id}`)).body
  const socket = await connect(server.url, '/acp')
  let last = 0
  const send = (method: string, params: object) => {
    socket.say({ jsonrpc: '2.0', id: ++last, method, params })
    return last
  }
  const ask = async (method: string, params: object) => {
    const now = send(method, params)
    return await socket.until((frame) => frame.id === now && frame.method === undefined)
  }
  const info = { name: 'test', version: '1' }
  await ask('initialize', { protocolVersion: version, info, capabilities: {}, clientCapabilities: {} })
  await ask(version === 1 ? 'session/load' : 'session/resume', { sessionId: id, cwd, mcpServers: [] })
  send('session/prompt', { sessionId: id, prompt: [{ type: 'text', text: SECOND }] })
  await until('the prompt is stored', async () => (await countOf(id)) === 2)
  socket.close()
  return { status: 200, retryAfter: null }
}

const countOf = async (id: string): Promise<number> =>
  (await server.call('GET', `/conversations/${id}/events?types=UserMessage`)).body.items.length

const BUSY: Reply = { status: 409, retryAfter: '1' }
/** The same message would be refused again: somebody must answer first. */
const WAITS: Reply = { status: 409, retryAfter: null }
/** The request does not answer what the protocol requires it to answer. */
const INCOMPLETE: Reply = { status: 400, retryAfter: null }
const TAKEN: Reply = { status: 200, retryAfter: null }

const TABLE: Readonly<Record<keyof typeof SENDERS, Readonly<Record<State, Reply>>>> = {
  Responses: { work: BUSY, permission: WAITS, question: TAKEN, client_tool: INCOMPLETE },
  // A call that the thread has not seen is interrupted: nobody could answer it by this protocol.
  'Chat Completions': { work: BUSY, permission: WAITS, question: TAKEN, client_tool: TAKEN },
  'AI SDK': { work: BUSY, permission: WAITS, question: TAKEN, client_tool: WAITS },
  'AG-UI': { work: BUSY, permission: INCOMPLETE, question: INCOMPLETE, client_tool: WAITS },
  'A2A, the context': { work: BUSY, permission: WAITS, question: WAITS, client_tool: WAITS },
  'A2A, the task': { work: TAKEN, permission: INCOMPLETE, question: TAKEN, client_tool: INCOMPLETE },
  MCP: { work: TAKEN, permission: TAKEN, question: TAKEN, client_tool: TAKEN },
  'ACP 1': { work: TAKEN, permission: TAKEN, question: TAKEN, client_tool: TAKEN },
  'ACP 2': { work: TAKEN, permission: TAKEN, question: TAKEN, client_tool: TAKEN },
}
const ROWS = Object.entries(TABLE).flatMap(([protocol, states]) =>
  Object.entries(states).map(([state, reply]) => ({ protocol, state, reply })),
)

test.each(ROWS)('by $protocol while it has $state: $reply.status', async ({ protocol, state, reply }) => {
  const place = await begin(state as State)
  const { status, retryAfter } = await SENDERS[protocol as keyof typeof SENDERS](place)
  expect({ status, retryAfter }).toEqual(reply)
  const answers = protocol === 'A2A, the task' && state === 'question'
  await until('it is stored, or not', async () => (await countOf(place.id)) === (status === 200 && !answers ? 2 : 1))
  const { items } = (await server.call('GET', `/conversations/${place.id}/events?types=RequestAnswered`)).body
  expect(items, 'a message decides nothing').toHaveLength(answers ? 1 : 0)
  await server.call('POST', `/conversations/${place.id}/pause`, { interrupt: true })
})
