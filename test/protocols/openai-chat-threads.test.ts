/** Threads of the Chat Completions API on a real server: what continues, what is taken back, and what waits. */
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import OpenAI, { APIError } from 'openai'
import type { ChatCompletionMessageParam } from 'openai/resources/chat/completions'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ScriptedQuestion, ScriptedTurn } from '../../src/llm/scripted/script.ts'
import { setStageHere } from '../support/agent.ts'
import { ASKS } from '../support/asked-question.ts'
import { LOOK_UP } from '../support/chat-completions.ts'
import { KEY } from '../support/server.ts'
import { until } from '../support/until.ts'

const stage = await setStageHere(({ body }) => turnFor(body))
afterAll(() => stage[Symbol.asyncDispose]())
const { server } = stage
const LLM = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
const clientWith = (apiKey: string) => new OpenAI({ apiKey, baseURL: `${server.url}/v1`, maxRetries: 0 })
const openai = clientWith(KEY)

/** Names all that the user has said, or does what was asked last. */
function turnFor({ messages }: ScriptedQuestion['body']): ScriptedTurn {
  const last = messages.at(-1)
  const textIn = ({ content }: { content?: unknown }) =>
    typeof content === 'string' ? content : JSON.stringify(content)
  const said = textIn(last ?? {})
  if (last?.role === 'tool') return { text: `Read: ${said.slice(0, 200)}` }
  if (said.includes('touch'))
    return {
      text: 'Now.',
      calls: [{ name: 'Bash', arguments: { command: said.replaceAll(/.*(touch \w+).*/gs, '$1') } }],
    }
  if (said.includes('which one')) return ASKS
  if (said.includes('look up')) return { calls: [{ name: 'look_up', arguments: { number: '17' } }] }
  if (said.includes('endless')) return { text: 'one '.repeat(300), chunk_delay_ms: 500 }
  if (said.includes('slowly')) return { text: 'one two three four five six', chunk_delay_ms: 100 }
  const all = messages.flatMap((message) => (message.role === 'user' ? [textIn(message)] : []))
  const texts = all.filter((text) => !text.startsWith('[The user has taken the conversation back'))
  return { text: `I know: ${texts.join(', ')}.` }
}

beforeAll(async () => {
  await server.call('PUT', '/profiles/coder', { tools: ['Bash', 'AskUserQuestion'], llm_config: LLM })
  await server.call('PUT', '/profiles/other', { tools: [], llm_config: LLM })
})

/** A client that sends all messages each time, as chat pages do. */
class Chat {
  readonly messages: ChatCompletionMessageParam[] = []
  readonly thread: string
  readonly #client: OpenAI
  constructor(thread: string, client = openai) {
    this.thread = thread
    this.#client = client
  }
  async send(messages: readonly ChatCompletionMessageParam[], more: object = {}, headers: object = {}) {
    const all = { 'X-Conversation-Id': this.thread, ...headers }
    const body = { model: 'coder', messages: [...messages], ...more, stream: false as const }
    return (await this.#client.chat.completions.create(body, { headers: all })).choices[0]!
  }
  async say(content: string, more: object = {}) {
    this.messages.push({ role: 'user', content })
    const choice = await this.send(this.messages, more)
    this.messages.push(choice.message)
    return choice
  }
  /** The client forgets all after `left` messages, and says something else. */
  async sayAfter(left: number, content: string) {
    this.messages.splice(left)
    return await this.say(content)
  }
}

async function viewOf({ thread }: Pick<Chat, 'thread'>) {
  const { items } = (await server.call('GET', '/conversations?limit=200')).body
  const found = items.filter(({ external_id }: { external_id?: string }) => external_id === thread)
  expect(found).toHaveLength(1)
  return found[0]
}

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  )

test('the messages of a thread are one conversation, also after a restart', async () => {
  const chat = new Chat('one')
  expect((await chat.say('first')).message.content).toBe('I know: first.')
  expect((await chat.say('second')).message.content).toBe('I know: first, second.')
  await server.restart()
  expect((await chat.say('third')).message.content).toBe('I know: first, second, third.')
  const { id } = await viewOf(chat)
  const events = await stage.events(id, 'types=UserMessage')
  expect(events.map(({ content }) => content[0].text)).toEqual(['first', 'second', 'third'])
  const same = new Chat('one')
  same.messages.push(...chat.messages.map((message) => ({ ...message, extra: 1 })))
  expect((await same.say('fourth')).message.content).toContain('third, fourth')
})

test('the headers of other servers name a thread, too, and user names none', async () => {
  const hello = [{ role: 'user' as const, content: 'hello' }]
  for (const name of ['X-OpenHands-ServerConversation-ID', 'X-OpenWebUI-Chat-Id']) {
    await new Chat('').send(hello, {}, { [name]: `by ${name}`.replace(' ', '-') })
    await viewOf({ thread: `by-${name}` })
  }
  const before = (await server.call('GET', '/conversations/count')).body.count
  await new Chat('').send(hello, { user: 'user-17' })
  await expect.poll(async () => (await server.call('GET', '/conversations/count')).body.count).toBe(before)
  for (const thread of ['x'.repeat(201), 'two words', 'ü'])
    await expect(new Chat(thread).say('hello')).rejects.toMatchObject({ status: 400, param: 'x-conversation-id' })
})

test('a regenerated or edited message takes the conversation back, and the log keeps what was', async () => {
  const chat = new Chat('edits')
  await chat.say('first')
  await chat.say('second')
  await chat.say('third')
  expect((await chat.sayAfter(4, 'third')).message.content).toBe('I know: first, second, third.')
  expect((await chat.sayAfter(2, 'other')).message.content).toBe('I know: first, other.')
  expect((await chat.say('more')).message.content).toBe('I know: first, other, more.')
  expect((await chat.sayAfter(0, 'first')).message.content).toBe('I know: first.')
  const { id } = await viewOf(chat)
  const kept = await stage.events(id, 'types=UserMessage,Rewound')
  expect(kept.filter(({ type }) => type === 'Rewound')).toHaveLength(3)
  expect(kept.filter(({ type }) => type === 'UserMessage')).toHaveLength(7)
})

test('another history is refused, and changes nothing', async () => {
  const chat = new Chat('histories')
  await chat.say('first')
  await chat.say('second')
  const known = [...chat.messages]
  const [one, answer, two, answered] = known as [any, any, any, any] // eslint-disable-line typescript/no-explicit-any
  const next = { role: 'user', content: 'third' }
  const wrong = [
    [{ ...one, content: 'another first' }, answer, two, answered, next],
    [one, { ...answer, content: 'I never said this.' }, two, answered, next],
    [one, answer, two, { ...answered, content: 'Nor this.' }, next],
    [one, answer, { ...two, content: 'another' }, answered, next],
    [one, answer, two, answered, next, { role: 'assistant', content: 'Invented.' }, next],
    // Programs that make titles send one message, with the id of the thread.
    [{ role: 'user', content: 'Write a title for this chat.' }],
  ]
  for (const messages of wrong)
    await expect(chat.send(messages), JSON.stringify(messages)).rejects.toMatchObject({
      status: 409,
      code: 'history_differs',
    })
  expect((await chat.say('third')).message.content).toBe('I know: first, second, third.')
  const part = { role: 'assistant', content: 'I know: first, second, th' } as const
  const stopped = [...known, next as ChatCompletionMessageParam, part, { role: 'user', content: 'fourth' } as const]
  expect((await chat.send(stopped)).message.content).toBe('I know: first, second, third, fourth.')
  const newest = [...stopped.slice(2), { role: 'assistant', content: 'I know: first, second, third, fourth.' } as const]
  expect((await chat.send([...newest, { role: 'user', content: 'fifth' }])).message.content).toContain('fourth, fifth')
})

test('a thread of another server begins with its messages, and continues', async () => {
  const chat = new Chat('imported')
  chat.messages.push({ role: 'system', content: 'Be kind.' }, { role: 'user', content: 'long ago' })
  chat.messages.push({ role: 'assistant', content: 'It was.' })
  expect((await chat.say('and now')).message.content).toMatch(/long ago.*It was.*and now/s)
  expect((await chat.say('then')).message.content).toMatch(/and now.*then/s)
  expect((await chat.say('at last')).message.content).toMatch(/then, at last/s)
})

test('a call waits for a decision of another client, and the thread continues after it', async () => {
  const chat = new Chat('decided')
  const asked = await chat.say('touch once')
  expect(asked.finish_reason).toBe('stop')
  const { id, workdir } = await viewOf(chat)
  const [request] = (await server.call('GET', `/conversations/${id}/requests`)).body.items
  expect(asked.message.content).toContain(`/conversations/${id}/requests/${request.request_id}`)
  const yes = [...chat.messages, { role: 'user' as const, content: 'yes' }]
  await expect(chat.send(yes)).rejects.toMatchObject({ status: 409, code: 'waiting_for_decision' })
  expect(await exists(join(workdir, 'once'))).toBe(false)
  const [{ tool_use_id, input_hash }] = request.payload.tool_uses
  const decisions = [{ tool_use_id, input_hash, behavior: 'allow' }]
  await server.call('POST', `/conversations/${id}/requests/${request.request_id}`, { kind: 'permission', decisions })
  await expect.poll(async () => (await viewOf(chat)).status).toBe('idle')
  expect(await exists(join(workdir, 'once'))).toBe(true)
  expect((await chat.say('done?')).message.content).toBe('I know: touch once, done?.')
})

test('the same request again has what the agent has said since another client decided, and the thread continues', async () => {
  const chat = new Chat('decided-elsewhere')
  const key = { 'Idempotency-Key': 'key-18' }
  const messages = [{ role: 'user' as const, content: 'touch twice' }]
  const asked = await chat.send(messages, {}, key)
  expect(await chat.send(messages, {}, key)).toEqual(asked)
  const { id } = await viewOf(chat)
  const [request] = (await server.call('GET', `/conversations/${id}/requests`)).body.items
  const [{ tool_use_id, input_hash }] = request.payload.tool_uses
  const decisions = [{ tool_use_id, input_hash, behavior: 'allow' }]
  await server.call('POST', `/conversations/${id}/requests/${request.request_id}`, { kind: 'permission', decisions })
  const again = await chat.send(messages, {}, key)
  expect(again.message.content).toBe(`${asked.message.content}\n\nRead: [no output]`)
  const options = { headers: { 'X-Conversation-Id': chat.thread, 'X-Stainless-Retry-Count': '1' } }
  const stream = await openai.chat.completions.create({ model: 'coder', messages, stream: true }, options)
  const chunks = await Array.fromAsync(stream)
  expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe(again.message.content)
  const next = await chat.send([...messages, again.message, { role: 'user', content: 'and' }])
  expect(next.message.content).toBe('I know: touch twice, and.')
  expect(await chat.send(messages, {}, key)).toEqual(again)
})

test('the same request again has nothing of what followed a message, nor of what its own function had to give', async () => {
  const chat = new Chat('closed-elsewhere')
  const key = { 'Idempotency-Key': 'key-19' }
  const question = [{ role: 'user' as const, content: 'which one' }]
  const asked = await chat.send(question, {}, key)
  const answered = [...question, asked.message, { role: 'user' as const, content: 'SQLite' }]
  expect((await chat.send(answered)).message.content).toBe('I know: which one, SQLite.')
  expect(await chat.send(question, {}, key)).toEqual(asked)

  const other = new Chat('called-elsewhere')
  const messages = [{ role: 'user' as const, content: 'look up' }]
  const calling = await other.send(messages, { tools: [LOOK_UP] }, key)
  const { id } = await viewOf(other)
  const [request] = (await server.call('GET', `/conversations/${id}/requests`)).body.items
  const answer = { kind: 'client_tool', output: 'Found.' }
  expect((await server.call('POST', `/conversations/${id}/requests/${request.request_id}`, answer)).status).toBe(200)
  await expect.poll(async () => (await viewOf(other)).status).toBe('idle')
  expect(await other.send(messages, { tools: [LOOK_UP] }, key)).toEqual(calling)
})

test('what a client takes back while it waits, or after it was stopped, ends', async () => {
  const chat = new Chat('stopped')
  await chat.say('touch nothing')
  const { id } = await viewOf(chat)
  const waiting = async () => (await server.call('GET', `/conversations/${id}/requests`)).body.items
  const [former] = await waiting()
  expect((await chat.sayAfter(0, 'touch nothing')).message.content).toContain('touch nothing')
  expect(await waiting()).toMatchObject([{ request_id: expect.not.stringMatching(former.request_id) }])
  const slow = chat.sayAfter(0, 'touch nothing').then(() => chat.sayAfter(0, 'slowly'))
  await expect(slow).rejects.toMatchObject({ code: 'history_differs' })
  const other = new Chat('paused')
  const answer = other.say('endless')
  await expect.poll(async () => (await viewOf(other).catch(() => ({}))).status).toBe('running')
  await server.call('POST', `/conversations/${(await viewOf(other)).id}/pause`, { interrupt: true })
  expect((await answer).message.content).toMatch(/\(The agent was stopped\.\)$/)
  expect((await other.say('and')).message.content).toBe('I know: endless, and.')
})

test('a question is text, and the next message closes it once, also if the client repeats it', async () => {
  const chat = new Chat('asks')
  expect((await chat.say('which one')).message.content).toMatch(/Which database\?\n1\. SQLite\n2\. PostgreSQL/)
  const answer = [...chat.messages, { role: 'user' as const, content: 'SQLite' }]
  const first = await chat.send(answer)
  expect(first.message.content).toBe('I know: which one, SQLite.')
  expect(await chat.send(answer, {}, { 'X-Stainless-Retry-Count': '1' })).toEqual(first)
  const next = await chat.send([...answer, first.message, { role: 'user', content: 'and' }])
  expect(next.message.content).toBe('I know: which one, SQLite, and.')
  const { id } = await viewOf(chat)
  const { items } = (await server.call('GET', `/conversations/${id}/events?types=RequestAnswered,RequestClosed`)).body
  expect(items).toMatchObject([{ type: 'RequestClosed', kind: 'question', reason: 'message' }])
})

test('a busy thread is refused, and a lost connection does not stop its agent', async () => {
  const messages = [{ role: 'user' as const, content: 'slowly' }]
  let threads = 0
  // The agent of a thread may have ended before the next message comes.
  const { chat, error } = await until('a thread that is busy', async () => {
    const thread = new Chat(`busy-${++threads}`)
    const options = { headers: { 'X-Conversation-Id': thread.thread } }
    const stream = await openai.chat.completions.create({ model: 'coder', messages, stream: true }, options)
    for await (const { choices } of stream) if (choices[0]?.delta.content) break
    const next = [...messages, { role: 'user' as const, content: 'and' }]
    const refusal = await thread.send(next).catch((reason: unknown) => reason)
    return refusal instanceof APIError && { chat: thread, error: refusal }
  })
  expect(error).toMatchObject({ status: 409, code: 'conversation_running' })
  expect(error.headers!.get('retry-after')).toBe('1')
  await expect.poll(async () => (await viewOf(chat)).status).toBe('idle')
  const part = { role: 'assistant', content: 'one two' } as const
  const next = await chat.send([...messages, part, { role: 'user', content: 'and' }])
  expect(next.message.content).toBe('I know: slowly, and.')
})

test('a request that the client repeats is the same turn, and a key belongs to one body', async () => {
  const chat = new Chat('repeated')
  const messages = [{ role: 'user' as const, content: 'slowly' }]
  const first = chat.send(messages)
  const isStored = async () =>
    (await stage.events((await viewOf(chat)).id, 'types=UserMessage').catch(() => [])).length > 0
  await until('the message', () => isStored().catch(() => false))
  const again = await chat.send(messages, {}, { 'X-Stainless-Retry-Count': '1' })
  expect(again.message.content).toBe((await first).message.content)
  const key = { 'Idempotency-Key': 'key-17' }
  const next = [...messages, again.message, { role: 'user' as const, content: 'next' }]
  const answers = [await chat.send(next, {}, key), await chat.send(next, {}, key)]
  expect(answers[1]!.message.content).toBe(answers[0]!.message.content)
  await expect(chat.send([...next, { role: 'user', content: 'x' }], {}, key)).rejects.toMatchObject({
    code: 'idempotency_mismatch',
  })
  const { id } = await viewOf(chat)
  expect(await stage.events(id, 'types=UserMessage')).toHaveLength(2)
})

test('one of two first requests of a thread begins it, and two threads work at once', async () => {
  const messages = [{ role: 'user' as const, content: 'slowly' }]
  const racing = await Promise.allSettled([1, 2].map(() => new Chat('racing').send(messages)))
  expect(racing.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
  await viewOf({ thread: 'racing' })
  const both = await Promise.all(['left', 'right'].map((thread) => new Chat(thread).send(messages)))
  expect(both.map(({ message }) => message.content)).toEqual(Array(2).fill('one two three four five six'))
})

test('a function of the client is answered in its thread, also after a restart', async () => {
  const chat = new Chat('functions')
  const { message } = await chat.say('look up', { tools: [LOOK_UP] })
  const id = message.tool_calls![0]!.id
  await expect(chat.send([...chat.messages, { role: 'user', content: 'hello' }], { tools: [LOOK_UP] })).rejects.toThrow(
    /role tool is missing/,
  )
  await server.restart()
  chat.messages.push({ role: 'tool', tool_call_id: id, content: 'it was shipped' })
  await expect(new Chat('another').send(chat.messages, { tools: [LOOK_UP] })).rejects.toMatchObject({ status: 400 })
  const answer = await chat.send(chat.messages, { tools: [LOOK_UP] })
  expect(answer.message.content).toContain('it was shipped')
  chat.messages.push(answer.message, { role: 'developer', content: 'Be brief.' })
  expect((await chat.say('thanks')).message.content).toContain('system: Be brief.')
  expect((await chat.say('again')).message.content).toMatch(/thanks.*again/)
})

test('a thread has one model, and is that of its user', async () => {
  await new Chat('owned').say('first')
  await expect(new Chat('owned').send([{ role: 'user', content: 'x' }], { model: 'other' })).rejects.toMatchObject({
    status: 409,
    code: 'conversation_exists',
  })
  const scopes = ['read', 'write']
  const { key } = (await server.call('POST', '/keys', { name: 'a test', scopes, user_id: 'user-17' })).body
  const mine = new Chat('owned', clientWith(key))
  expect((await mine.say('mine')).message.content).toBe('I know: mine.')
})
