/** Streams on which nothing happens: proxies on the way close connections that are silent. */
import { afterEach, expect, test, vi } from 'vitest'
import { createStreamSlots } from '../../src/http/streams/stream-slots.ts'
import { Profiles } from '../../src/conversations/profiles/profiles.ts'
import { lazily } from '../../src/lib/lazily.ts'
import { loadProtocol } from '../../src/protocols/protocol-routes.ts'
import { MODEL_KEY } from '../conversations/fixtures.ts'
import { KEY, setHttp } from '../http/fixtures.ts'

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

test.each(STREAMS)(
  'of %s: a stream of %s has a comment every 15 seconds while the agent is silent',
  async (name, _, path, body) => {
    await using http = await setHttp({ script: [{ raw: [BEGINNING], hang: true }] })
    const { manager, metrics, storage, model } = http.bench
    const profiles = lazily(async () => new Profiles({ table: storage.profiles, keys: storage.keys.material }))
    const deps = { manager, metrics, profiles, streamSlots: createStreamSlots(1), corsOrigins: [] }
    await http.app.register((await loadProtocol(name))!.routes, deps as never)
    const url = await http.listen()
    const llm_config = { model: 'scripted', base_url: model.baseUrl, api_key: MODEL_KEY }
    await http.call('PUT', '/profiles/default', { llm_config })
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'], shouldAdvanceTime: true })
    const response = await fetch(url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', 'a2a-version': '1.0' },
      body: JSON.stringify(body),
    })
    expect(response.headers.get('x-accel-buffering')).toBe('no')
    let text = ''
    const chunks = response.body!.pipeThrough(new TextDecoderStream()).values()
    const readUntil = async (isThere: () => boolean) => {
      while (!isThere()) {
        const { value, done } = await chunks.next()
        if (done) throw new Error(`The stream has ended: ${text}`)
        text += value
      }
    }
    await readUntil(() => text.includes('Wait.'))
  vi.setTimerTickMode('manual')
    for (const count of [1, 2]) {
      await vi.advanceTimersByTimeAsync(15_000)
      await readUntil(() => text.split('\n\n').filter((frame) => frame === ': keep-alive').length === count)
    }
    await chunks.return?.()
  },
)
