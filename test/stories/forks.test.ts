/** What else a client can have of a conversation: a copy to go on with, what its agent is made of, events of its own, a search. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { bash, setStage } from '../support/agent.ts'
import { borrowServer } from '../support/shared-server.ts'
import { subscribe } from '../support/stream.ts'

const shared = await borrowServer()
afterAll(() => shared[Symbol.asyncDispose]())

test('a fork in the middle of a run is independent and has the files of that moment; the original keeps running', async () => {
  await using stage = await setStage([
    bash('echo one > notes; until [ -e go ]; do sleep 0.02; done; echo done >> notes'),
    bash('cat notes; pwd'),
    { text: 'End.' },
  ])
  const { server } = stage
  const id = await stage.create({ title: 'First', secrets: { TOKEN: 'a-secret-of-this-story' } })
  const { workdir } = (await server.call('GET', `/conversations/${id}`)).body
  await server.call('POST', `/conversations/${id}/messages`, { message: { role: 'user', content: 'go' }, run: true })
  await expect.poll(() => readFile(join(workdir, 'notes'), 'utf8').catch(() => '')).toBe('one\n')

  const key = { 'idempotency-key': 'fork-1' }
  const forked = await server.call('POST', `/conversations/${id}/fork`, { title: 'Second' }, key)
  expect(forked.status, JSON.stringify(forked.body)).toBe(201)
  expect(forked.headers.get('location')).toBe(`/conversations/${forked.body.id}`)
  expect(forked.body).toMatchObject({ title: 'Second', status: 'paused' })
  expect(forked.body.workdir).not.toBe(workdir)
  expect((await server.call('GET', `/conversations/${id}`)).body.status).toBe('running')
  expect(await readFile(join(forked.body.workdir, 'notes'), 'utf8')).toBe('one\n')

  await server.restart('SIGKILL')
  const again = await server.call('POST', `/conversations/${id}/fork`, { title: 'Second' }, key)
  expect({ status: again.status, id: again.body.id }).toEqual({ status: 201, id: forked.body.id })
  const other = await server.call('POST', `/conversations/${forked.body.id}/fork`, { title: 'Second' }, key)
  expect(other, 'of another original').toMatchObject({ status: 422, body: { error: 'idempotency_mismatch' } })

  const run = await stage.say(forked.body.id, 'what is there?')
  const [result] = run.filter((event) => event.type === 'ToolResult')
  expect(result.output.stdout).toBe(`one\n${forked.body.workdir}\n`)
  expect((await server.call('GET', `/conversations/${forked.body.id}/secrets`)).body.items).toEqual(['TOKEN'])
  const events = await stage.events(forked.body.id)
  expect(events.map((event) => event.seq)).toEqual(events.map((_, at) => at + 1))
  expect(await stage.events(forked.body.id, 'types=ForkedFrom')).toMatchObject([{ from_conversation_id: id }])
  expect((await server.call('DELETE', `/conversations/${id}`)).status).toBe(204)
  expect(await readFile(join(forked.body.workdir, 'notes'), 'utf8')).toBe('one\n')
})

test('a fork that cannot be is refused in words', async () => {
  await using stage = await setStage([{ text: 'Hello.' }], shared)
  const id = await stage.create()
  const fork = async (body?: unknown, of = id) => {
    const answer = await stage.server.call('POST', `/conversations/${of}/fork`, body)
    return { status: answer.status, error: answer.body.error }
  }
  for (const body of [
    { at_seq: 0 },
    { at_seq: -1 },
    { at_seq: 'x' },
    { workdir: 'move' },
    { title: '' },
    { id: 'x' },
    { more: 1 },
  ])
    expect(await fork(body), JSON.stringify(body)).toEqual({ status: 400, error: 'invalid_request' })
  expect(await fork({ at_seq: 1000 })).toEqual({ status: 409, error: 'cursor_ahead' })
  expect(await fork({ id })).toEqual({ status: 409, error: 'conversation_exists' })
  expect(await fork({}, '018f0000-0000-7000-8000-000000000001')).toEqual({
    status: 404,
    error: 'conversation_not_found',
  })
  expect(await fork()).toMatchObject({ status: 201 })
  expect((await stage.server.call('GET', '/conversations/count')).body).toEqual({ count: 2 })
})

test('agent-info tells what the agent is made of, and no secret of it', async () => {
  await using stage = await setStage([{ text: 'Hello.' }], shared)
  const id = await stage.create({
    system_prompt: 'Be brief.',
    microagents: ['And kind.'],
    tools: ['Bash', 'Finish'],
    confirmation_mode: true,
    max_iteration_per_run: 7,
    max_seconds_per_run: 90,
    secrets: { TOKEN: 'a-secret-of-this-story' },
  })
  const { status, body } = await stage.server.call('GET', `/conversations/${id}/agent-info`)
  expect(status).toBe(200)
  expect(body).toMatchObject({
    model: 'scripted',
    provider: 'openai',
    base_url: stage.model.baseUrl,
    system_prompt: 'Be brief.\n\nAnd kind.',
    microagents: ['And kind.'],
    tools: [
      {
        name: 'Bash',
        description: expect.stringContaining('bash'),
        input_schema: { type: 'object', properties: { command: {} } },
      },
      { name: 'Finish' },
    ],
    confirmation_mode: true,
    limits: { max_iteration_per_run: 7, max_seconds_per_run: 90 },
  })
  expect(JSON.stringify(body)).not.toMatch(/a-secret-of-this-story|scripted-model-key/)
  expect(body.isolation).toBe((await stage.server.call('GET', '/info')).body.isolation)
  await stage.server.call('PUT', `/conversations/${id}/config`, { max_iteration_per_run: 8, title: 'Named' })
  expect((await stage.server.call('GET', `/conversations/${id}/agent-info`)).body.limits.max_iteration_per_run).toBe(8)
  expect((await stage.server.call('GET', `/conversations?q=named`)).body.items).toMatchObject([{ id, title: 'Named' }])
})

test('a client’s event is stored and shown, redacted, and no word of it is for the model', async () => {
  await using stage = await setStage([{ text: 'Hello.' }], shared)
  const id = await stage.create({ secrets: { TOKEN: 'a-secret-of-this-story' } })
  const stream = await subscribe(stage.server.url, `/conversations/${id}/events/stream`)
  const post = (body: unknown, headers = {}) => stage.server.call('POST', `/conversations/${id}/events`, body, headers)
  const event = { name: 'cursor', data: { at: [1, null, 'a-secret-of-this-story'] } }
  const key = { 'idempotency-key': 'event-1' }
  const posted = await post(event, key)
  expect(posted).toMatchObject({ status: 201, body: { event_id: expect.any(String), seq: expect.any(Number) } })
  expect(posted.headers.get('location')).toBe(`/conversations/${id}/events/${posted.body.event_id}`)
  const frame = await stream.until(({ event: type }) => type === 'ClientEvent')
  expect(frame.data).toMatchObject({
    ...posted.body.id,
    name: 'cursor',
    source: 'user',
    data: { at: [1, null, '<secret:TOKEN>'] },
  })
  stream.close()
  await stage.server.restart('SIGKILL')
  expect((await post(event, key)).body).toEqual(posted.body)
  expect(await post({ ...event, data: 1 }, key)).toMatchObject({ status: 422, body: { error: 'idempotency_mismatch' } })
  expect(await post({ name: 'bare' })).toMatchObject({ status: 201 })
  expect(await stage.events(id, 'types=ClientEvent')).toMatchObject([{ name: 'cursor' }, { name: 'bare' }])

  await stage.say(id, 'hello')
  expect(JSON.stringify(stage.model.requests)).not.toContain('cursor')
  for (const body of [{}, { name: '' }, { name: 'x'.repeat(201) }, { name: 'x', more: 1 }, '{'])
    expect(await post(body), JSON.stringify(body)).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
  const deep = `{"name":"x","data":${'['.repeat(50_000)}${']'.repeat(50_000)}}`
  expect(await post(deep, key)).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
  expect(await post({ name: 'x', data: 'x'.repeat(300_000) })).toMatchObject({
    status: 413,
    body: { error: 'body_too_large' },
  })
})

test('events are searched by what they say, page by page', async () => {
  await using stage = await setStage([{ text: 'It is in the Haystack.' }], shared)
  const id = await stage.create()
  await stage.say(id, 'Where is the NEEDLE?')
  await stage.server.call('POST', `/conversations/${id}/events`, { name: 'note', data: ['needle'] })
  expect((await stage.events(id, 'q=needle')).map((event) => event.type)).toEqual(['UserMessage', 'ClientEvent'])
  expect((await stage.events(id, 'q=haystack&types=AssistantMessage')).map((event) => event.type)).toEqual([
    'AssistantMessage',
  ])
  expect(await stage.events(id, 'q=nothing%20like%20it')).toEqual([])
  expect((await stage.server.call('GET', `/conversations/${id}/events/count?q=needle`)).body).toEqual({ count: 2 })
  const path = `/conversations/${id}/events?q=needle&order=desc&limit=1`
  const first = (await stage.server.call('GET', path)).body
  const second = (await stage.server.call('GET', `${path}&page_id=${first.next_page_id}`)).body
  expect([...first.items, ...second.items].map((event) => event.type)).toEqual(['ClientEvent', 'UserMessage'])
  expect(await stage.server.call('GET', `/conversations/${id}/events?q=`)).toMatchObject({ status: 400 })
})
