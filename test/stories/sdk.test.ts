/** Tools of the program, and approvals that change the input: query() in this process, against a server, and REST leave the same events. */
import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { z } from 'zod'
import type { Event, QueryOptions } from '../../src/index.ts'
import { run, sessions, tool } from '../../src/index.ts'
import type { ScriptedQuestion } from '../../src/llm/scripted/script.ts'
import { KEY } from '../support/server.ts'
import { setStage } from '../support/agent.ts'
import { comparable } from '../support/same-events.ts'
import type { RequestKind } from '../../src/contract/requests/request-kinds.ts'
import { answer, requestsOf } from './requests.ts'

/** An estimate would depend on the length of paths. */
const usage = { prompt_tokens: 10, completion_tokens: 5 }
const stage = await setStage(({ body }) => ({ ...turnFor(body), usage }))
const home = await realpath(await mkdtemp(join(tmpdir(), 'agent-server-sdk-story-')))
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})
const { server } = stage

const QUESTION = {
  question: 'Which one?',
  header: 'One',
  options: [{ label: 'A' }, { label: 'B' }],
  multiSelect: false,
}

/** Calls three tools, one after the other. */
function turnFor({ messages }: ScriptedQuestion['body']) {
  const read = messages.filter(({ role }) => role === 'tool').length
  if (read === 3) return { text: `Done: ${messages.length} messages.` }
  const calls = [
    { name: 'look_up', arguments: { number: 17 } },
    { name: 'Bash', arguments: { command: 'mkdir asked' } },
    { name: 'AskUserQuestion', arguments: { questions: [QUESTION] } },
  ]
  return { calls: calls.slice(read, read + 1) }
}

const lookUp = tool('look_up', 'Returns an order.', { number: z.number() }, ({ number }) => ({
  number,
  status: 'shipped',
}))

const optionsFor = (cwd: string): QueryOptions => ({
  model: 'scripted',
  baseUrl: stage.model.baseUrl,
  apiKey: 'scripted-model-key',
  cwd,
  tools: ['Bash', 'AskUserQuestion', lookUp],
  permissionMode: 'default',
  allowedTools: ['look_up'],
  canUseTool: () => ({ behavior: 'allow', updatedInput: { command: 'mkdir changed' } }),
  answerQuestions: ([first]) => ({ [first!.question]: 'B' }),
})

const newDirectory = async (name: string) => {
  const path = join(home, name)
  await mkdir(path)
  return path
}

async function byQuery(place: Pick<QueryOptions, 'server' | 'persistDir'>, name: string): Promise<unknown[]> {
  const cwd = await newDirectory(name)
  const { sessionId, finalText } = await run({ prompt: 'begin', options: { ...optionsFor(cwd), ...place } })
  expect(finalText).toBe('Done: 8 messages.')
  return comparable(await Array.fromAsync(sessions(place).read(sessionId)), [cwd, home, server.home])
}

async function byRest(): Promise<unknown[]> {
  const cwd = await newDirectory('rest')
  const options = optionsFor(cwd)
  const id = await stage.create({
    workdir: cwd,
    tools: ['Bash', 'AskUserQuestion'],
    permission_mode: 'default',
    allowed_tools: options.allowedTools,
    client_tools: [lookUp.declaration],
  })
  const call = async (method: string, path: string, body?: unknown) =>
    (await server.call(method, `/conversations/${id}${path}`, body)).body
  const first = async (kind: RequestKind) => {
    await expect.poll(() => requestsOf(server.call, id, kind)).toHaveLength(1)
    return (await requestsOf(server.call, id, kind))[0]
  }
  const reply = async ({ request_id }: { request_id: string }, body: object) => {
    expect((await answer(server.call, id, request_id, body)).status).toBe(200)
  }
  await call('POST', '/messages', { message: { role: 'user', content: 'begin' }, run: true })
  await reply(await first('client_tool'), { kind: 'client_tool', output: { number: 17, status: 'shipped' } })
  const permission = await first('permission')
  const { tool_use_id, input_hash } = permission.payload.tool_uses[0]
  const decision = { behavior: 'allow', updated_input: { command: 'mkdir changed' } }
  await reply(permission, { kind: 'permission', decisions: [{ tool_use_id, input_hash, ...decision }] })
  await reply(await first('question'), { kind: 'question', answers: { 'Which one?': 'B' } })
  await expect.poll(async () => (await call('GET', '')).status).toBe('idle')
  return comparable(await stage.events(id), [cwd, server.home])
}

test('query() in this process, query() against a server and REST alone leave the same events', async () => {
  const rest = await byRest()
  const answered = (rest as Event[]).filter((event) => event.type === 'RequestAnswered')
  expect(answered.map(({ kind }) => kind)).toEqual(['client_tool', 'permission', 'question'])
  expect(await byQuery({ persistDir: join(home, 'data') }, 'in-process')).toEqual(rest)
  expect(await byQuery({ server: { baseUrl: server.url, apiKey: KEY } }, 'server')).toEqual(rest)
})
