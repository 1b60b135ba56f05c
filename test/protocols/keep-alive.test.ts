/** Streams on which nothing happens: proxies on the way close connections that are silent. */
import { afterEach, expect, test, vi } from 'vitest'
import { createStreamSlots } from '../../src/http/streams/stream-slots.ts'
import { Profiles } from '../../src/conversations/profiles/profiles.ts'
import { lazily } from '../../src/lib/lazily.ts'
import { loadProtocol } from '../../src/protocols/protocol-routes.ts'
import { MODEL_KEY } from '../conversations/fixtures.ts'
import { KEY, setHttp } from '../http/fixtures.ts'
import { until } from '../support/until.ts'

afterEach(() => void vi.useRealTimers())

/** An answer of a model that says no more. */
const BEGINNING = 'data: {"choices":[{"index":0,"delta":{"content":"Wait."}}]}\n\n'

const message = { role: 'user', content: 'go' }
/** The protocol, and the path and body of a request that begins a stream. */
const STREAMS: readonly (readonly [string, string, string, object])[] = [
  ['openai', 'responses', '/v1/responses', { model: 'default', input: 'go', stream: true }],
  ['openai', 'chat completions', '/v1/chat/completions', { model: 'default', messages: [message], stream: true }],
  [
    'ai-sdk',
    'the AI SDK',
    '/ai/chat',
    {
      id: 'chat',
      trigger: 'submit-message',
      messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'go' }] }],
    },
  ],
  [
    'ag-ui',
    'AG-UI',
    '/ag-ui/default',
    { threadId: 't', runId: 'r', messages: [{ id: 'm', ...message }], tools: [], context: [] },
  ],
  ['a2a', 'A2A', '/a2a/v1/message:stream', { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'go' }] } }],
]

/** Returns what posts to a server of one protocol, whose clock does not go on by itself after `stop`. */
async function serve(name: string) {
  const http = await setHttp({ script: [{ raw: [BEGINNING], hang: true }] })
  const { manager, metrics, storage, model } = http.bench
  const profiles = lazily(async () => new Profiles({ table: storage.profiles, keys: storage.keys.material }))
  const deps = { manager, metrics, profiles, streamSlots: createStreamSlots(1), corsOrigins: [], version: '0' }
  await http.app.register((await loadProtocol(name))!.routes, deps as never)
  const url = await http.listen()
  const llm_config = { model: 'scripted', base_url: model.baseUrl, api_key: MODEL_KEY }
  await http.call('PUT', '/profiles/default', { llm_config })
  const toFake = ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] as const
  vi.useFakeTimers({ toFake: [...toFake], shouldAdvanceTime: true })
  const headers = {
    authorization: `Bearer ${KEY}`,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'a2a-version': '1.0',
  }
  const post = (path: string, body: object) =>
    fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })
  return Object.assign(http, { model, post, stop: () => void vi.setTimerTickMode('manual') })
}

/** Returns what reads on until the text of the stream is right. */
function readerOf(response: Response) {
  expect(response.headers.get('x-accel-buffering')).toBe('no')
  const chunks = response.body!.pipeThrough(new TextDecoderStream()).values()
  let text = ''
  return async (isRight: (text: string) => boolean) => {
    while (!isRight(text)) {
      const { value, done } = await chunks.next()
      if (done) throw new Error(`The stream has ended: ${text}`)
      text += value
    }
  }
}

const hasComments = (count: number) => (text: string) =>
  text.split('\n\n').filter((frame) => /^: keep-?alive$/.test(frame)).length === count

test.each(STREAMS)(
  'of %s: a stream of %s has a comment every 15 seconds while the agent is silent',
  async (name, _, path, body) => {
    await using http = await serve(name)
    const readUntil = readerOf(await http.post(path, body))
    await readUntil((text) => text.includes('Wait.'))
    http.stop()
    for (const count of [1, 2]) {
      await vi.advanceTimersByTimeAsync(15_000)
      await readUntil(hasComments(count))
    }
  },
)

test('a call of MCP has a comment every 15 seconds while its agent works', async () => {
  await using http = await serve('mcp')
  const params = { name: 'start_agent', arguments: { prompt: 'go', wait_seconds: 45 } }
  const answering = http.post('/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params })
  await until('the agent works', async () => http.model.requests.length > 0)
  http.stop()
  await vi.advanceTimersByTimeAsync(15_000)
  const readUntil = readerOf(await answering)
  await readUntil(hasComments(1))
  await vi.advanceTimersByTimeAsync(15_000)
  await readUntil(hasComments(2))
})
