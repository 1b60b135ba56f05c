/**
 * A data directory of an earlier version: `data-format-1.json` has the files that were written by a server of commit f6bcd13d, which was killed
 * while a permission, a question, a client tool, a host and a subagent waited; one conversation has answered ones. The
 * conversation in which a form of an MCP server waited is derived from the one with the question.
 */
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import type { Event, EventOf } from '../../src/contract/events/event.ts'
import { Event as EventSchema } from '../../src/contract/events/event.ts'
import { startScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import { answersIn, openedIn } from '../support/answering.ts'
import { decisionsFor } from '../support/answering-over-http.ts'
import { startServer } from '../support/server.ts'

/** The text of each file that a server wrote, by its path. */
const WRITTEN: Readonly<Record<string, string>> = JSON.parse(
  await readFile(join(import.meta.dirname, 'data-format-1.json'), 'utf8'),
)
/** Where that server had its workdirs. */
const WORKDIRS = '/srv/agent-server/work'

const MODEL_URL = 'http://127.0.0.1:18999/v1'

const IDS = {
  permission: '01a20fff-fbc2-71a4-9295-baa7fbb016c0',
  question: '01a20fff-fc9c-7188-a983-fe352699c056',
  ended: '01a20fff-fd19-77f0-8f63-eddbb4f40143',
  client_tool: '01a21000-00be-73d7-a0b2-2bd09155de7e',
  network: '01a21000-0146-760c-8267-5e008997a464',
  subagent: '01a21000-0232-73cf-b02d-92ad0f399c56',
  form: '01a21000-0300-7188-a983-fe352699c056',
}

/** The text of each file, by its path. */
const FIXTURE: Readonly<Record<string, string>> = { ...WRITTEN, ...filesOfForm() }

/** That version stored the question of a running call as any other, and the status stayed `running`. */
function filesOfForm(): Record<string, string> {
  const files = Object.entries(WRITTEN).filter(([path]) => path.includes(IDS.question))
  const ofForm = files.map(([path, text]) => {
    const lines = text.replaceAll('"name":"AskUserQuestion"', '"name":"mcp__odd__ask"').split('\n')
    // A space at the end of a line joins it with the next one.
    const shown = path.endsWith('.jsonl') ? `${lines.slice(0, -2).join('\n').trimEnd()}\n` : text
    return [path.replace(IDS.question, IDS.form), shown.replaceAll(IDS.question, IDS.form)] as const
  })
  return Object.fromEntries(ofForm)
}

const model = await startScriptedModel(() => ({ text: 'Done.' }))

const workdirOf = (dataDir: string, name: string) => join(dirname(dataDir), 'work', name)

/** The data directory, with workdirs and a model that this machine has. */
async function prepare(dataDir: string): Promise<void> {
  for (const name of Object.keys(IDS)) await mkdir(workdirOf(dataDir, name), { recursive: true })
  for (const [name, text] of Object.entries(FIXTURE)) {
    const moved = text.replaceAll(WORKDIRS, dirname(workdirOf(dataDir, 'x'))).replaceAll(MODEL_URL, model.baseUrl)
    await mkdir(dirname(join(dataDir, name)), { recursive: true })
    await writeFile(join(dataDir, name), moved)
  }
}

const server = await startServer({
  prepare,
  env: {
    OPENHANDS_MASTER_KEY: 'the-master-key-of-a-fixture',
    LLM_MODEL: 'scripted',
    LLM_BASE_URL: model.baseUrl,
    LLM_API_KEY: 'scripted-model-key',
  },
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await model.close()
})

const call = (method: string, path: string, body?: unknown) =>
  server.call(method, path, body, { authorization: 'Bearer the-master-key-of-a-fixture' })
const eventsOf = async (id: string, query = ''): Promise<Event[]> =>
  (await call('GET', `/conversations/${id}/events?limit=1000${query}`)).body.items
const idle = (id: string) =>
  expect.poll(async () => (await call('GET', `/conversations/${id}`)).body.status).toBe('idle')
const answer = (id: string, requestId: string, body: object) =>
  call('POST', `/conversations/${id}/requests/${requestId}`, body)

type Line = { seq: number; id: string; type: string; timestamp: string }

const linesOf = (id: string): Line[] =>
  FIXTURE[`sessions/${id}/events.jsonl`]!.trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Line)

test('every event is read as one of today, with its seq, its id and its time, and filters find it', async () => {
  for (const id of Object.values(IDS)) {
    const lines = linesOf(id)
    const events = (await eventsOf(id)).slice(0, lines.length)
    for (const [at, event] of events.entries()) {
      const { seq, id: eventId, timestamp } = lines[at]!
      expect(event).toMatchObject({ seq, id: eventId, timestamp, conversation_id: id })
      expect(EventSchema.parse(event), JSON.stringify(event)).toEqual(event)
    }
    for (const type of ['RequestOpened', 'RequestAnswered', 'RequestClosed']) {
      const last = lines.length + 1
      const found = await eventsOf(id, `&types=${type}&before_seq=${last}`)
      expect(
        found.map(({ seq }) => seq),
        type,
      ).toEqual(events.filter((one) => one.type === type).map(({ seq }) => seq))
      const { count } = (await call('GET', `/conversations/${id}/events/count?types=${type}`)).body
      expect(count).toBeGreaterThanOrEqual(found.length)
    }
  }
})

test('what survives a restart is listed with the oldest first, and the others are closed', async () => {
  const { items } = (await call('GET', '/requests')).body
  expect(items).toMatchObject([
    {
      conversation_id: IDS.permission,
      title: 'permission',
      request: {
        kind: 'permission',
        tool_use_ids: ['call_1', 'call_2'],
        payload: { tool_uses: [{ input: { command: 'touch one' } }, { decision: 'allow' }] },
      },
    },
    { conversation_id: IDS.question, request: { kind: 'question', payload: { questions: [{ question: 'Which?' }] } } },
    { conversation_id: IDS.subagent, request: { kind: 'permission', agent_name: 'helper' } },
  ])
  const closed = (await eventsOf(IDS.network)).filter(
    (event): event is EventOf<'RequestClosed'> => event.type === 'RequestClosed',
  )
  const [host] = openedIn(await eventsOf(IDS.network), 'network')
  expect(closed).toMatchObject([{ kind: 'network', reason: 'server_restart', request_id: host!.request_id }])
  expect(host!.payload).toEqual({ host: 'registry.example.com', port: 443 })
  for (const name of ['client_tool', 'network'] as const)
    expect((await call('GET', `/conversations/${IDS[name]}/requests`)).body.items, name).toEqual([])
  const [waited] = openedIn(await eventsOf(IDS.client_tool), 'client_tool')
  expect(waited).toMatchObject({ tool_use_ids: ['call_1'], payload: { name: 'look_up', input: { n: 1 } } })
  const late = await answer(IDS.client_tool, waited!.request_id, { kind: 'client_tool', output: 'late' })
  expect([late.status, late.body.error]).toEqual([409, 'request_closed'])
})

test('a form of a call that was running ends with the call', async () => {
  const events = await eventsOf(IDS.form)
  const [form] = openedIn(events, 'question')
  expect(form).toMatchObject({ tool_use_ids: ['call_1'] })
  expect(events.filter(({ type }) => type === 'ToolResult')).toMatchObject([
    { tool_use_id: 'call_1', is_error: true, error_type: 'interrupted' },
  ])
  expect((await call('GET', `/conversations/${IDS.form}`)).body.status).toBe('paused')
  expect((await call('GET', `/conversations/${IDS.form}/requests`)).body.items).toEqual([])
  const late = await answer(IDS.form, form!.request_id, { kind: 'question', answers: { 'Which?': 'B' } })
  expect([late.status, late.body.error]).toEqual([409, 'request_closed'])
  expect(await eventsOf(IDS.form)).toEqual(events)
})

describe('an answer now', () => {
  test('decides the rest of a permission request, with what was decided before', async () => {
    const [request] = (await call('GET', `/conversations/${IDS.permission}/requests`)).body.items
    const decided = await answer(IDS.permission, request.request_id, decisionsFor(request, { behavior: 'allow' }))
    expect(decided.body).toEqual({ status: 'running', pending: 0 })
    await idle(IDS.permission)
    const made = await readdir(workdirOf(server.dataDir, 'permission'))
    expect(made.toSorted(), 'the changed input of the earlier decision counts').toEqual(['changed', 'one'])
  })

  test('lets a subagent continue', async () => {
    const [request] = (await call('GET', `/conversations/${IDS.subagent}/requests`)).body.items
    await answer(IDS.subagent, request.request_id, decisionsFor(request, { behavior: 'allow' }))
    await idle(IDS.subagent)
    expect(await readdir(workdirOf(server.dataDir, 'subagent'))).toEqual(['sub'])
  })

  test('is the result of the call that asked', async () => {
    const [request] = (await call('GET', `/conversations/${IDS.question}/requests`)).body.items
    await answer(IDS.question, request.request_id, { kind: 'question', answers: { 'Which?': 'B' } })
    await idle(IDS.question)
    const results = (await eventsOf(IDS.question)).filter(({ type }) => type === 'ToolResult')
    expect(results).toMatchObject([{ is_error: false, output: expect.stringContaining('"Which?"="B"') }])
  })

  test('that repeats an earlier one changes nothing, and another one is refused', async () => {
    const { ended } = IDS
    const events = await eventsOf(ended)
    const [allowed, closed] = openedIn(events, 'permission')
    const say = async (requestId: string, body: object) => {
      const { status, body: said } = await answer(ended, requestId, body)
      return status === 200 ? 200 : said.error
    }
    expect(await say(allowed!.request_id, decisionsFor(allowed!, { behavior: 'allow' }))).toBe(200)
    expect(await say(allowed!.request_id, decisionsFor(allowed!, { behavior: 'deny' }))).toBe('already_answered')
    expect(await say(closed!.request_id, decisionsFor(closed!, { behavior: 'allow' }))).toBe('request_closed')
    const [question] = answersIn(events, 'question')
    expect(await say(question!.request_id, { kind: 'question', answers: { '0': 'A' } })).toBe(200)
    expect(await say(question!.request_id, { kind: 'question', answers: { '0': 'B' } })).toBe('already_answered')
    const [result] = answersIn(events, 'client_tool')
    expect(await say(result!.request_id, { kind: 'client_tool', output: 'found' })).toBe(200)
    expect(await say(result!.request_id, { kind: 'client_tool', output: 'lost' })).toBe('already_answered')
    expect(await eventsOf(ended)).toEqual(events)
  })
})

test('a fork has the events of today', async () => {
  const { id } = (await call('POST', `/conversations/${IDS.ended}/fork`, { workdir: 'share' })).body
  const text = await readFile(join(server.dataDir, 'sessions', id, 'events.jsonl'), 'utf8')
  expect(text).toContain('"type":"RequestOpened"')
  expect(text).not.toMatch(/"type":"(Permission|User(Question|Answer)|ClientTool|Network(Request|Decision))/)
})

test('callbacks get what they asked for, under its name of today', async () => {
  const { items } = (await call('GET', `/conversations/${IDS.permission}/callbacks`)).body
  expect(items).toMatchObject([{ events: ['RequestOpened', 'Result'] }])
})

test('an older server refuses the directory from now on', async () => {
  expect(await readFile(join(server.dataDir, 'version'), 'utf8')).toBe('3\n')
  expect((await stat(join(server.dataDir, 'sessions', IDS.ended, 'events.jsonl'))).size).toBeGreaterThan(0)
})
