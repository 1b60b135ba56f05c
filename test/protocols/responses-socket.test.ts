/** The Responses API over a WebSocket, as the client of OpenAI uses it. */
import OpenAI from 'openai'
import { ResponsesWS } from 'openai/resources/responses/ws'
import type { Response, ResponsesClientEvent, ResponsesServerEvent } from 'openai/resources/responses/responses'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { setStageHere } from '../support/agent.ts'
import { KEY } from '../support/server.ts'
import { connect, connectAs } from '../support/socket.ts'
import { until } from '../support/until.ts'

const stage = await setStageHere(({ body: { messages } }) => {
  const last = messages.at(-1)
  if (last?.role === 'tool') return { text: 'It is done.' }
  if (JSON.stringify(last?.content).includes('touch'))
    return { calls: [{ name: 'Bash', arguments: { command: 'touch it' } }] }
  const users = messages.filter(({ role }) => role === 'user').map(({ content }) => content)
  return { reasoning: 'Counting.', text: `Said: ${users.join(', ')}`, chunk_delay_ms: 20 }
})
afterAll(() => stage[Symbol.asyncDispose]())
const { server } = stage
const APPROVES = { type: 'mcp', server_label: 'agent-server', server_url: 'https://agent-server.invalid' } as const
const openai = new OpenAI({ apiKey: KEY, baseURL: `${server.url}/v1`, maxRetries: 0 })

beforeAll(async () => {
  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
  expect((await server.call('PUT', '/profiles/coder', { tools: ['Bash'], llm_config })).status).toBe(201)
})

class Client implements Disposable {
  readonly events: ResponsesServerEvent[] = []
  readonly #ws = new ResponsesWS(openai)
  constructor() {
    this.#ws.on('event', (event) => void this.events.push(event))
    this.#ws.on('error', () => {}) // it is an event, too
  }
  send(event: Omit<ResponsesClientEvent.ResponseCreate, 'type'>): void {
    this.#ws.send({ type: 'response.create', ...event })
  }
  /** Sends it, and resolves to the last of its events. */
  async ask(event: Omit<ResponsesClientEvent.ResponseCreate, 'type'>): Promise<ResponsesServerEvent> {
    const before = this.events.length
    this.send({ model: 'coder', ...event })
    const isLast = ({ type }: ResponsesServerEvent) =>
      /^(error|response\.(completed|failed|incomplete))$/.test(type ?? '')
    await until('the end of the response', async () => this.events.slice(before).some(isLast))
    return this.events.slice(before).find(isLast)!
  }
  [Symbol.dispose](): void {
    this.#ws.close()
  }
}

const responseOf = (event: ResponsesServerEvent): Response => {
  if (!('response' in event)) throw new Error(JSON.stringify(event))
  return event.response
}

test('turns continue each other, with the events of a stream, and a call is approved', async () => {
  using client = new Client()
  const deltasSince = (before: number) =>
    client.events.slice(before).flatMap((event) => (event.type === 'response.output_text.delta' ? [event.delta] : []))
  // What comes to a busy server at once is one piece.
  const first = await until('a response in pieces', async () => {
    const before = client.events.length
    const response = responseOf(await client.ask({ input: 'one' }))
    expect(deltasSince(before).join('')).toBe('Said: one')
    return deltasSince(before).length > 1 && response
  })
  const { output } = await openai.responses.retrieve(first.id)
  expect(first.output).toEqual(output)
  const second = responseOf(await client.ask({ input: 'two', previous_response_id: first.id }))
  expect(JSON.stringify(second.output)).toContain('Said: one, two')

  const asked = responseOf(await client.ask({ input: 'touch it', tools: [APPROVES], previous_response_id: second.id }))
  const request = asked.output.find((item) => item.type === 'mcp_approval_request')!
  const approval = { type: 'mcp_approval_response', approval_request_id: request.id, approve: true } as const
  const done = responseOf(
    await client.ask({ input: [approval], tools: [APPROVES], previous_response_id: asked.id, stream_id: 'lane' }),
  )
  expect(JSON.stringify(done.output)).toContain('It is done.')
  expect(client.events.at(-1)).toMatchObject({ stream_id: 'lane' })
})

test('an error is an event with its status, and the next request is answered', async () => {
  using client = new Client()
  const refusals: [Record<string, unknown>, object][] = [
    [
      { input: 'one', model: 'nobody' },
      { status: 404, error: { code: 'model_not_found' } },
    ],
    [
      { input: 'one', previous_response_id: `resp_${'0'.repeat(32)}_2` },
      { status: 404, error: { code: 'previous_response_not_found' } },
    ],
    [
      { input: 'one', background: true },
      { status: 400, error: { type: 'invalid_request_error' } },
    ],
    [{ input: ' ' }, { status: 400 }],
  ]
  for (const [event, refusal] of refusals) expect(await client.ask(event)).toMatchObject({ type: 'error', ...refusal })
  expect(responseOf(await client.ask({ input: 'one' })).status).toBe('completed')

  const raw = await connect(server.url, '/v1/responses')
  for (const frame of ['no json', '[]', '['.repeat(5000), { type: 'response.steer', input: 'x' }]) raw.say(frame)
  await until('the errors', async () => raw.frames.length === 4)
  expect(raw.frames.every(({ type, status }) => type === 'error' && status === 400)).toBe(true)
  raw.close()
})

test('a lost connection does not stop the agent, and one without a key, or that only reads, is refused', async () => {
  const client = new Client()
  client.send({ model: 'coder', input: 'say much' })
  await until('the beginning', async () => client.events.some(({ type }) => type === 'response.created'))
  const { id } = responseOf(client.events.find(({ type }) => type === 'response.created')!)
  client[Symbol.dispose]()
  await until('the end', async () => (await openai.responses.retrieve(id)).status === 'completed')

  const { body } = await server.call('POST', '/keys', { name: 'reader', scopes: ['read'] })
  const refused = async (key: string) =>
    await connectAs(server.url, '/v1/responses', { headers: { authorization: `Bearer ${key}` } }).catch(
      ({ status }: { status: number }) => status,
    )
  expect(await refused('wrong-key-0123456789')).toBe(401)
  expect(await refused(body.key)).toBe(403)
  expect((await server.call('GET', '/v1/responses')).status).toBe(426)
})
