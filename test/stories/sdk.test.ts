/** One story, told by query() in this process, by query() against a server, and by REST alone: the same events. */
import { access, mkdir, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, expect, test } from 'vitest'
import { z } from 'zod'
import type { Event, EventOf, QueryEvent, QueryOptions } from '../../src/index.ts'
import { query, run, sessions, tool } from '../../src/index.ts'
import type { ScriptedQuestion } from '../../src/llm/scripted/script.ts'
import { KEY } from '../support/server.ts'
import { setStage } from '../support/agent.ts'
import { comparable } from '../support/same-events.ts'

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

/** In a process of its own: the shell waits for it already when the file appears. */
const HANG = `bash -c 'touch started; exec sleep 60'`

/** `begin` calls three tools, one after the other; `hang` runs a command that does not end. */
function turnFor({ messages }: ScriptedQuestion['body']) {
  const at = messages.findLastIndex(({ role }) => role === 'user')
  const said = JSON.stringify(messages[at]?.content)
  const read = messages.slice(at).filter(({ role }) => role === 'tool').length
  if (said.includes('hang')) return { calls: [{ name: 'Bash', arguments: { command: HANG } }] }
  if (!said.includes('begin') || read === 3) return { text: `Done: ${messages.length} messages.` }
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
  allowedTools: ['look_up', 'Bash(touch:*)', 'Bash(sleep:*)', 'Edit(started)'],
  canUseTool: () => ({ behavior: 'allow', updatedInput: { command: 'mkdir changed' } }),
  answerQuestions: ([first]) => ({ [first!.question]: 'B' }),
})

const place = async (name: string) => {
  const path = join(home, name)
  await mkdir(path)
  return path
}

/** The command has begun. It is removed, so that the next one can be seen. */
async function hangs(cwd: string): Promise<void> {
  const path = join(cwd, 'started')
  await expect
    .poll(() =>
      access(path).then(
        () => true,
        () => false,
      ),
    )
    .toBe(true)
  await rm(path)
}

/** Says `begin`, and when that is answered `hang`, which it interrupts. Returns the id of the session. */
async function tell(options: QueryOptions, cwd: string): Promise<string> {
  const answered = Promise.withResolvers<void>()
  async function* prompt() {
    yield 'begin'
    await answered.promise
    yield { content: 'hang' }
  }
  const results: EventOf<'Result'>[] = []
  const asking = query({ prompt: prompt(), options })
  for await (const event of asking) {
    if (event.type === 'Result') results.push(event)
    if (event.type === 'Result') answered.resolve()
    if (event.type === 'ToolUse' && results.length === 1) void hangs(cwd).then(() => asking.interrupt())
  }
  expect(results.map(({ stop_reason }) => stop_reason)).toEqual(['completed', 'paused'])
  expect(results[0]?.final_text).toBe('Done: 8 messages.')
  return results[0]!.session_id
}

async function inProcess(): Promise<unknown[]> {
  const cwd = await place('in-process')
  const persistDir = join(home, 'data')
  const options = { ...optionsFor(cwd), persistDir }
  const resume = await tell(options, cwd)
  const later = { persistDir, resume }
  const child = spawn(
    process.execPath,
    [join(import.meta.dirname, '../sdk/children/hanging-query.ts'), JSON.stringify({ prompt: 'hang', options: later })],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  )
  await hangs(cwd)
  child.kill('SIGKILL')
  await once(child, 'close')
  expect((await run({ prompt: 'again', options: later })).stopReason).toBe('completed')
  return comparable(await Array.fromAsync(sessions({ persistDir }).read(resume)), [cwd, persistDir])
}

async function againstServer(): Promise<unknown[]> {
  const cwd = await place('server')
  const elsewhere = { server: { baseUrl: server.url, apiKey: KEY } }
  const resume = await tell({ ...optionsFor(cwd), ...elsewhere }, cwd)
  const later = { ...elsewhere, resume }
  const events: QueryEvent[] = []
  for await (const event of query({ prompt: 'hang', options: later })) {
    events.push(event)
    if (event.type === 'ToolUse') void hangs(cwd).then(() => server.restart('SIGKILL'))
  }
  expect(events.filter(({ type }) => type === 'Result')).toMatchObject([{ stop_reason: 'server_restart' }])
  expect((await run({ prompt: 'again', options: later })).stopReason).toBe('completed')
  return comparable(await Array.fromAsync(sessions(elsewhere).read(resume)), [cwd, server.dataDir])
}

async function byRest(): Promise<unknown[]> {
  const cwd = await place('rest')
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
  const say = (content: string) => call('POST', '/messages', { message: { role: 'user', content }, run: true })
  const first = async (path: string) => {
    await expect.poll(async () => (await call('GET', path)).items).toHaveLength(1)
    return (await call('GET', path)).items[0]
  }
  const settled = (status: string) => expect.poll(async () => (await call('GET', '')).status).toBe(status)
  await say('begin')
  const { tool_use_id } = await first('/tool-calls')
  await call('POST', `/tool-results/${tool_use_id}`, { output: { number: 17, status: 'shipped' } })
  const { request_id, tool_uses } = await first('/permissions')
  const decision = { behavior: 'allow', updated_input: { command: 'mkdir changed' } }
  const { tool_use_id: asked, input_hash } = tool_uses[0]
  await call('POST', `/permissions/${request_id}`, { decisions: [{ tool_use_id: asked, input_hash, ...decision }] })
  const { question_id } = await first('/questions')
  await call('POST', `/questions/${question_id}`, { answers: { 'Which one?': 'B' } })
  await settled('idle')
  await say('hang')
  await hangs(cwd)
  await call('POST', '/pause', { interrupt: true })
  await settled('paused')
  await say('hang')
  await hangs(cwd)
  await server.restart('SIGKILL')
  await say('again')
  await settled('idle')
  return comparable(await stage.events(id), [cwd, server.dataDir])
}

test('query() in this process, query() against a server and REST alone leave the same events', async () => {
  const [rest, local] = await Promise.all([byRest(), inProcess()])
  expect(rest.map((event) => (event as Event).type)).toContain('ClientToolResult')
  expect(local).toEqual(rest)
  expect(await againstServer()).toEqual(rest)
})
