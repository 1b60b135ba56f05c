/** Values nested more deeply than anyone can walk are refused with a sentence, wherever one may send what one likes. */
import { hasFiles } from '../support/server.ts'
import { appendFile, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { setStage } from '../support/agent.ts'
import { borrowServer } from '../support/shared-server.ts'
import { connect } from '../support/socket.ts'

const shared = await borrowServer()
afterAll(() => shared[Symbol.asyncDispose]())

const ID = '00000000-0000-4000-8000-000000000000'
const HASH = '0'.repeat(64)
const deep = (levels: number) => `${'{"a":['.repeat(levels / 2)}${']}'.repeat(levels / 2)}`
const TOO_DEEP = deep(20_000)

describe('a body', () => {
  let id: string
  beforeAll(async () => {
    const llm_config = { model: 'm', base_url: 'http://127.0.0.1:9' }
    id = (await shared.call('POST', '/conversations', { llm_config })).body.id
  })

  test.each([
    ['POST', '/conversations', `{"metadata":${TOO_DEEP}}`],
    ['POST', '/conversations', `{"llm_config":{"model":"m","extra_body":${TOO_DEEP}}}`],
    ['POST', '/conversations', `{"llm_config":{"model":"m","litellm_extra_body":${TOO_DEEP}}}`],
    ['POST', '/conversations', `{"unknown":${TOO_DEEP}}`],
    ['POST', '/conversations', TOO_DEEP],
    ['PUT', '/conversations/:id/config', `{"llm_config":{"extra_body":${TOO_DEEP}}}`],
    ['POST', '/conversations/:id/events', `{"name":"n","data":${TOO_DEEP}}`],
    ['POST', '/conversations/:id/messages', `{"message":{"role":"user","content":${TOO_DEEP}}}`],
    ['POST', '/conversations/:id/tasks', `{"title":"t","runnable":${TOO_DEEP}}`],
    [
      'POST',
      `/conversations/:id/requests/${ID}`,
      `{"kind":"permission","decisions":[{"tool_use_id":"c","input_hash":"${HASH}","behavior":"allow","updated_input":${TOO_DEEP}}]}`,
    ],
  ])('%s %s: %.40s is a 400', async (method, path, body) => {
    for (const headers of [{}, { 'idempotency-key': 'k' }] as const) {
      const answer = await shared.call(method, path.replace(':id', id), body, headers)
      expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
      expect(answer.body.message).toBe('The body is nested more than 100 levels deep.')
    }
  })
})

test('JSON of the maximum depth is stored, returned, hashed and copied', async () => {
  await using stage = await setStage([{ text: 'Hello.' }], shared)
  const data = deep(96)
  const id = await stage.create({ metadata: JSON.parse(data) as object })
  const headers = { 'idempotency-key': 'k' }
  const body = `{"name":"n","data":${data}}`
  expect(await stage.server.call('POST', `/conversations/${id}/events`, body, headers)).toMatchObject({ status: 201 })
  expect(await stage.server.call('POST', `/conversations/${id}/fork`, {})).toMatchObject({ status: 201 })
  await stage.server.restart('SIGKILL')
  const [kept] = await stage.events(id, 'types=ClientEvent')
  expect(JSON.stringify(kept.data)).toBe(data)
})

test('on a socket it is a problem, and the socket stays open', async () => {
  await using stage = await setStage([{ text: 'Hello.' }], shared)
  const socket = await connect(stage.server.url, `/conversations/${await stage.create()}/ws`)
  socket.say(`{"type":"answer","id":"1","request_id":"${ID}","answer":{"kind":"question","answers":${TOO_DEEP}}}`)
  const problem = await socket.until(({ type }) => type === 'problem')
  expect(problem).toMatchObject({ error: 'invalid_request', message: 'The frame is nested more than 100 levels deep.' })
  socket.say({ type: 'pause', id: '2' })
  expect(await socket.until(({ id }) => id === '2')).toBeDefined()
  socket.close()
})

test('a call whose arguments are too deep gets a result that says so, and the next request can be written', async () => {
  await using stage = await setStage([
    { calls: [{ name: 'Bash', arguments: `{"command":"true","more":${TOO_DEEP}}` }] },
    { text: 'I see.' },
  ])
  const events = await stage.say(await stage.create(), 'Begin.')
  const result = events.find(({ type }) => type === 'ToolResult')
  expect(result).toMatchObject({ is_error: true, error_type: 'invalid_input' })
  expect(result.output).toContain('nested more than 100 levels deep')
  expect(events.find(({ type }) => type === 'Result')).toMatchObject({ final_text: 'I see.' })
})

test.runIf(hasFiles)(
  'a log with a line too deep to be worked with is damaged, and every other conversation is not',
  async () => {
    await using stage = await setStage([{ text: 'Hello.' }], shared)
    const [id, other] = [await stage.create(), await stage.create()]
    await stage.server.call('POST', `/conversations/${id}/events`, { name: 'n', data: 'HERE' })
    await stage.server.stop('SIGTERM')
    const log = join(stage.server.dataDir, 'sessions', id, 'events.jsonl')
    const line = (await readFile(log, 'utf8')).trim().split('\n').at(-1)!
    const [seq] = /(?<="seq":)\d+/.exec(line)!
    const next = line.replace(`"seq":${seq}`, `"seq":${Number(seq) + 1}`).replace('"HERE"', deep(50_000))
    await appendFile(log, `${next}\n`)
    await stage.server.restart()
    expect(await stage.server.call('GET', `/conversations/${id}`)).toMatchObject({
      status: 409,
      body: { error: 'conversation_damaged' },
    })
    expect(await stage.server.call('GET', `/conversations/${other}`)).toMatchObject({ status: 200 })
  },
)
