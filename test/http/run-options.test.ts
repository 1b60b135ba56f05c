/** The options of one run, as clients send them: what the model is asked in that run, and no longer in the next. */
import { afterAll, expect, test } from 'vitest'
import { connectAs } from '../support/socket.ts'
import { expectProblem, INFO, setHttp } from './fixtures.ts'

const info = { ...INFO, tools: [...INFO.tools], network: { ...INFO.network, modes: [...INFO.network.modes] } }
const http = await setHttp({
  script: () => ({ text: 'Done.' }),
  http: { info: { ...info, limits: { ...INFO.limits, max_body_bytes: 1e6 } } },
})
const url = await http.listen()
afterAll(() => http[Symbol.asyncDispose]())

const OPTIONS = {
  instructions: 'Answer in French.',
  temperature: 0.2,
  max_output_tokens: 77,
  reasoning_effort: 'low',
}

const llm_config = { model: 'scripted', base_url: http.bench.model.baseUrl, api_key: 'the-key-of-a-model' }

/** Returns what the model was asked for the message. */
const askedFor = (text: string) => {
  const found = http.bench.model.requests.find(({ body }) => body.messages.at(-1)?.content === text)
  const { messages, temperature, max_completion_tokens, max_tokens, reasoning_effort } = Object(found?.body)
  return { system: messages[0].content, temperature, max: max_completion_tokens ?? max_tokens, reasoning_effort }
}

async function say(id: string, message: string, more: object = {}) {
  const posted = await http.call('POST', `/conversations/${id}/messages`, { message, ...more })
  expect(posted.status, posted.text).toBe(202)
}

const run = async (id: string, options: object = {}) => {
  const ended = await http.call('POST', `/conversations/${id}/run`, { ...options, wait: true })
  expect(ended.status, ended.text).toBe(200)
}

const untilIdle = (id: string) =>
  expect.poll(async () => (await http.call('GET', `/conversations/${id}`)).body.status).toBe('idle')

test('the options hold for one run, which a message or a request starts', async () => {
  const id = await http.create()
  await say(id, 'plain first')
  await run(id)
  const plain = askedFor('plain first')
  expect(plain).toMatchObject({ temperature: undefined, max: undefined, reasoning_effort: undefined })
  const optioned = {
    system: `${plain.system}\n\nAnswer in French.`,
    temperature: 0.2,
    max: 77,
    reasoning_effort: 'low',
  }
  await say(id, 'with a request')
  await run(id, OPTIONS)
  expect(askedFor('with a request')).toEqual(optioned)
  await say(id, 'with a message', { run: true, run_options: OPTIONS })
  await untilIdle(id)
  expect(askedFor('with a message')).toEqual(optioned)
  await say(id, 'plain again')
  await run(id)
  expect(askedFor('plain again')).toEqual(plain)
  const { body } = await http.call('GET', `/conversations/${id}/events?types=StatusUpdate`)
  const starts = body.items.filter(({ reason }: { reason: string }) => reason === 'run' || reason === 'message')
  expect(starts).toMatchObject([{}, OPTIONS, OPTIONS, {}])
  for (const plainStart of [starts[0], starts[3]])
    for (const name of Object.keys(OPTIONS)) expect(plainStart).not.toHaveProperty(name)
  expect((await http.call('GET', `/conversations/${id}`)).body.llm_config).not.toHaveProperty('temperature')
})

test.each([
  ['instructions', ''],
  ['instructions', 17],
  ['instructions', 'é'.repeat(128 * 1024 + 1)],
  ['temperature', 2.1],
  ['temperature', '0'],
  ['max_output_tokens', 0],
  ['max_output_tokens', 1.5],
  ['reasoning_effort', 'hard'],
])('a wrong value of %s is refused, and nothing begins', async (name, value) => {
  const id = await http.create()
  const refused = await http.call('POST', `/conversations/${id}/run`, { [name]: value })
  expectProblem(refused, 400, 'invalid_request')
  expect(refused.body.message).toContain(name)
  const message = { message: 'Hi', run: true, run_options: { [name]: value } }
  expectProblem(await http.call('POST', `/conversations/${id}/messages`, message), 400, 'invalid_request')
  const { body } = await http.call('GET', `/conversations/${id}/events?types=StatusUpdate,UserMessage`)
  expect(body.items).toEqual([])
})

test('the longest instructions are accepted', async () => {
  const id = await http.create()
  await say(id, 'at length')
  await run(id, { instructions: 'é'.repeat(128 * 1024) })
  expect(askedFor('at length').system).toMatch(/é$/)
})

test('a key that is limited to profiles says how the model answers, and gives no instructions', async () => {
  await http.call('PUT', '/profiles/reviewer', { llm_config })
  const grant = { name: 'a test', scopes: ['read', 'write', 'approve'], profiles: ['reviewer'] }
  const key = { authorization: `Bearer ${(await http.call('POST', '/keys', grant)).body.key}` }
  const { id } = (await http.call('POST', '/conversations', { profile: 'reviewer' }, key)).body
  const { instructions, ...sampling } = OPTIONS
  const messages = `/conversations/${id}/messages`
  const message = { message: 'from a limited key', run: true }
  const refused = await http.call('POST', messages, { ...message, run_options: { instructions } }, key)
  expectProblem(refused, 403, 'forbidden')
  expect(refused.body.message).toContain('instructions')
  expectProblem(await http.call('POST', `/conversations/${id}/run`, { instructions }, key), 403, 'forbidden')
  const socket = await connectAs(url, `/conversations/${id}/ws`, { headers: key })
  socket.say({ type: 'run', id: 'a', instructions })
  socket.say({ type: 'message', id: 'b', ...message, run_options: { instructions } })
  for (const name of ['a', 'b'])
    expect(await socket.until((frame) => frame.id === name)).toMatchObject({ type: 'problem', error: 'forbidden' })
  expect((await http.call('POST', messages, { ...message, run_options: sampling }, key)).status).toBe(202)
  await untilIdle(id)
  expect(askedFor('from a limited key')).toMatchObject({ temperature: 0.2, max: 77, reasoning_effort: 'low' })
  socket.say({ type: 'run', id: 'c', ...sampling })
  expect(await socket.until((frame) => frame.id === 'c')).toMatchObject({ type: 'ack' })
  socket.close()
})
