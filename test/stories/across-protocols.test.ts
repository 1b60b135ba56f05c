/** The promise of one log: a conversation begun by one protocol is decided by another, and finished by a third. */
import { mkdtemp, readFile, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { startScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import type { ScriptedQuestion, ScriptedTurn } from '../../src/llm/scripted/script.ts'
import { ASKS } from '../support/asked-question.ts'
import { A2aClient } from '../support/protocols/a2a-client.ts'
import { AcpClient } from '../support/protocols/acp-client.ts'
import { AgUiClient } from '../support/protocols/ag-ui-client.ts'
import { AiSdkClient } from '../support/protocols/ai-sdk-client.ts'
import { ChatClient } from '../support/protocols/chat-client.ts'
import type { Addressed, ProtocolClient } from '../support/protocols/protocol-client.ts'
import { ResponsesClient } from '../support/protocols/responses-client.ts'
import { RestClient } from '../support/protocols/rest-client.ts'
import { KEY, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const COMMAND = 'echo line >> made'

const textIn = ({ content }: { content?: unknown } = {}) =>
  typeof content === 'string' ? content : JSON.stringify(content)

/** What the agent does with the last message, or with the result of its call. */
function turnFor({ messages }: ScriptedQuestion): ScriptedTurn {
  const last = messages.at(-1)
  const said = textIn(last)
  const text = READ.find(([part]) => said.includes(part))?.[1]
  if (text !== undefined) return { text }
  if (last?.role === 'tool') return { text: 'It is done.' }
  if (said.includes('write')) return { text: 'I write.', calls: [{ name: 'Bash', arguments: { command: COMMAND } }] }
  if (said.includes('ask me')) return ASKS
  return { text: `This is the end of ${/of (.*\w)/.exec(said)?.[1]}.` }
}

const REASON = 'The file is not ours.'
const READ = [
  [REASON, 'I have read why not.'],
  ['did not allow this call', 'I do not write it.'],
  ['PostgreSQL', 'I take PostgreSQL.'],
] as const

const home = await realpath(await mkdtemp(join(tmpdir(), 'agent-server-across-')))
const model = await startScriptedModel(turnFor)
const server = await startServer({
  env: {
    LLM_MODEL: 'scripted',
    LLM_BASE_URL: model.baseUrl,
    LLM_API_KEY: 'scripted-model-key',
    OPENHANDS_WORKDIR_BASE: home,
    OPENHANDS_PROTOCOLS: 'openai,ai-sdk,ag-ui,a2a',
  },
})
// Editors choose no tools, and have these.
const { status } = await server.call('PUT', '/profiles/default', { tools: ['Bash', 'AskUserQuestion'] })
if (status !== 201) throw new Error(`the profile: ${status}`)
const place = { url: server.url, key: KEY, home }
const clients = {
  REST: new RestClient(place),
  Responses: new ResponsesClient(place),
  'AI SDK': new AiSdkClient(place),
  ACP: await AcpClient.start(place),
  'AG-UI': new AgUiClient(place),
  A2A: await A2aClient.start(place),
  'Chat Completions': new ChatClient(place),
} as const satisfies Record<string, ProtocolClient>

afterAll(async () => {
  await clients.ACP[Symbol.asyncDispose]()
  await server[Symbol.asyncDispose]()
  await model.close()
  await rm(home, { recursive: true, force: true })
})

type Name = keyof typeof clients
const NAMES = Object.keys(clients) as Name[]
const READERS = NAMES.filter((name) => name !== 'Chat Completions')
const FIVE = READERS.filter((name) => name !== 'A2A')

type Case = { readonly begins: Name; readonly decides: Name; readonly finishes: Name }

/** All 20 ordered pairs, each with a third one: all are different, and each is the third one four times. */
const PAIRS = FIVE.flatMap((begins, at) =>
  [1, 2, 3, 4].map((step): Case => {
    const nameAt = (index: number) => FIVE[index % FIVE.length]!
    return { begins, decides: nameAt(at + step), finishes: nameAt(at + 2 * step) }
  }),
)

/** The protocol that must be turned on is in each place once. That without decisions begins and finishes. */
const CASES: readonly Case[] = [
  ...PAIRS,
  { begins: 'A2A', decides: 'ACP', finishes: 'AI SDK' },
  { begins: 'Responses', decides: 'A2A', finishes: 'REST' },
  { begins: 'REST', decides: 'AG-UI', finishes: 'A2A' },
  { begins: 'Chat Completions', decides: 'ACP', finishes: 'AG-UI' },
  { begins: 'AI SDK', decides: 'REST', finishes: 'Chat Completions' },
]

async function made({ id }: Addressed): Promise<string> {
  const { workdir } = (await server.call('GET', `/conversations/${id}`)).body
  return await readFile(join(workdir, 'made'), 'utf8').catch(() => '')
}

/** Finishes it, and compares what every protocol has at the end. */
async function finish(conversation: Addressed, by: Name): Promise<void> {
  const end = `This is the end of ${conversation.id}.`
  expect(await clients[by].continueWith(conversation, `Tell the end of ${conversation.id}`)).toBe(end)
  for (const name of READERS) expect(await clients[name].finalText(conversation), `the end by ${name}`).toBe(end)
}

async function eventsOf({ id }: Addressed, types: string): Promise<unknown[]> {
  return (await server.call('GET', `/conversations/${id}/events?types=${types}`)).body.items
}

test('each of the five protocols finishes four of the cases, and begins and decides others', () => {
  expect(new Set(PAIRS.map(({ begins, decides }) => `${begins} ${decides}`)).size).toBe(20)
  for (const name of FIVE) expect(PAIRS.filter(({ finishes }) => finishes === name)).toHaveLength(4)
  for (const each of CASES) expect(new Set(Object.values(each)).size).toBe(3)
})

/** An editor does not see the end of a turn that another client has begun. */
const ends = ({ id }: Addressed) =>
  until('the end of the run', async () => (await server.call('GET', `/conversations/${id}`)).body.status === 'idle')

describe.concurrent('a call', () => {
  test.each(CASES)('begun by $begins, allowed by $decides, followed up by $finishes runs once', async (names) => {
    const { begins, decides, finishes } = names
    const conversation = await clients[begins].begin('Please write a line.')
    expect(await made(conversation)).toBe('')
    const verdict = { command: COMMAND, behavior: 'allow', reason: '', answer: 'It is done.' } as const
    await clients[decides].decide(conversation, verdict)
    await ends(conversation)
    await finish(conversation, finishes)
    expect(await made(conversation)).toBe('line\n')
    expect(await eventsOf(conversation, 'RequestAnswered')).toHaveLength(1)
    expect(await eventsOf(conversation, 'ToolResult')).toHaveLength(1)
  })

  test.each(CASES)('begun by $begins, denied by $decides, followed up by $finishes never runs', async (names) => {
    const { begins, decides, finishes } = names
    const conversation = await clients[begins].begin('Please write a line.')
    // The protocol of editors has no reason.
    const answer = decides === 'ACP' ? 'I do not write it.' : 'I have read why not.'
    await clients[decides].decide(conversation, { command: COMMAND, behavior: 'deny', reason: REASON, answer })
    await ends(conversation)
    await finish(conversation, finishes)
    expect(await made(conversation)).toBe('')
    expect(await eventsOf(conversation, 'RequestAnswered')).toHaveLength(1)
    expect(await eventsOf(conversation, 'ToolResult')).toMatchObject([{ is_error: true }])
  })
})

describe.concurrent('a question', () => {
  test.each(CASES)('begun by $begins is answered by $decides, and $finishes follows it up', async (names) => {
    const { begins, decides, finishes } = names
    const conversation = await clients[begins].begin('Please ask me.')
    await clients[decides].answer(conversation, { label: 'PostgreSQL', answer: 'I take PostgreSQL.' })
    await ends(conversation)
    await finish(conversation, finishes)
    expect(await eventsOf(conversation, 'RequestAnswered,RequestClosed')).toHaveLength(1)
  })
})

test.each(['Responses', 'Chat Completions'] as const)(
  'a question is closed by the next message of %s',
  async (name) => {
    const conversation = await clients['AI SDK'].begin('Please ask me.')
    await clients[name].answer(conversation, { label: 'PostgreSQL', answer: 'I take PostgreSQL.' })
    expect(await eventsOf(conversation, 'RequestAnswered,RequestClosed')).toMatchObject([{ reason: 'message' }])
  },
)

test('the id of a conversation opens nothing for a key that does not see it, and for another profile', async () => {
  const conversation = await clients.REST.begin('Please write a line.')
  const { body, status: keyStatus } = await server.call('POST', '/keys', {
    name: 'ada',
    scopes: ['read', 'write'],
    user_id: 'ada',
  })
  expect(keyStatus).toBe(201)
  const ofAda = new AiSdkClient({ ...place, key: body.key })
  expect(await ofAda.finalText(conversation)).toBe('')
  expect(await clients['AI SDK'].finalText(conversation)).toBe('I write.')
  const run = { threadId: conversation.id, runId: 'run', messages: [] }
  const authorization = `Bearer ${body.key}`
  expect(await server.call('POST', '/ag-ui/default', run, { authorization })).toMatchObject({ status: 400 })
  await server.call('PUT', '/profiles/other', { tools: ['Bash'] })
  const said = { ...run, messages: [{ id: 'm', role: 'user', content: 'Hello' }] }
  const refused = { status: 409, body: { error: 'conversation_exists' } }
  expect(await server.call('POST', '/ag-ui/other', said)).toMatchObject(refused)
  expect(await eventsOf(conversation, 'UserMessage,RequestAnswered,RequestClosed')).toHaveLength(1)
})
