import type { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { bash, setStage } from '../support/agent.ts'
import { KEY } from '../support/server.ts'
import { connect, connectAs, connectAsBrowser } from '../support/socket.ts'
import type { SocketClient } from '../support/socket.ts'

const eventsIn = ({ frames }: SocketClient) => frames.filter(({ seq }) => seq !== undefined)

test('a page makes a conversation over a socket, talks to the agent and sees it work', async () => {
  await using stage = await setStage({
    replies: [{ turns: [bash('echo out of the shell'), { text: 'It said so.' }] }],
  })
  const { server, model } = stage
  const socket = await connectAsBrowser(server.url, '/conversations/ws?create=frame&deltas=true')
  const llm_config = { model: 'scripted', base_url: model.baseUrl, api_key: 'scripted-model-key' }
  socket.say({ type: 'create', conversation: { title: 'Over a socket', llm_config } })
  const first = await socket.until(() => true)
  expect(first).toMatchObject({ type: 'StatusUpdate', status: 'idle', reason: 'created' })
  const { conversation_id: id } = first
  expect(socket.frames[1] ?? (await socket.until(({ type }) => type === 'ready'))).toMatchObject({
    conversation_id: id,
  })

  socket.say({ type: 'message', id: 'mine', message: { role: 'user', content: 'go' }, run: true })
  const ack = await socket.until(({ type }) => type === 'ack')
  expect(ack).toMatchObject({ id: 'mine', of: 'message', result: { run_id: expect.any(String) } })
  await socket.until(
    ({ type, previous_status, seq }) => type === 'StatusUpdate' && previous_status === 'running' && seq,
  )
  expect(socket.frames.find(({ type }) => type === 'Result')).toMatchObject({ final_text: 'It said so.' })
  const textOf = (type: string, field: string) =>
    socket.frames.flatMap((frame) => (frame.type === type ? (frame[field] ?? '') : '')).join('')
  expect(textOf('ToolOutputDelta', 'text')).toBe('out of the shell\n')
  expect(textOf('AssistantDelta', 'text_delta')).toBe('It said so.')
  expect(eventsIn(socket)).toEqual(await stage.events(id))
  expect((await server.call('GET', `/conversations/${id}`)).body.title).toBe('Over a socket')

  await server.call('DELETE', `/conversations/${id}`)
  expect(await socket.closed).toBe(4410)
  expect(socket.frames.at(-1)).toEqual({ type: 'deleted' })
})

test('the agent is steered over the socket: approve by hash, run, pause; each frame has its answer, wrong ones too', async () => {
  await using stage = await setStage({
    replies: [{ turns: [bash('echo first'), { text: 'Done.' }, { text: 'x'.repeat(3000), chunk_delay_ms: 20 }] }],
  })
  const { server } = stage
  const id = await stage.create({ confirmation_mode: true })
  const socket = await connect(server.url, `/conversations/${id}/ws`)
  expect(await socket.until(() => true)).toMatchObject({
    type: 'ready',
    conversation_id: id,
    status: 'idle',
    after_seq: 1,
  })
  const ask = async (frame: object) => {
    const sent = `${Math.random()}`
    socket.say({ id: sent, ...frame })
    return await socket.until((each) => each.id === sent && (each.type === 'ack' || each.type === 'problem'))
  }

  expect(await ask({ type: 'pause' })).toMatchObject({ of: 'pause', result: { status: 'idle' } })
  await ask({ type: 'message', message: { role: 'user', content: 'go' }, run: true })
  const { request_id, payload } = await socket.until(({ type }) => type === 'RequestOpened')
  expect(await ask({ type: 'run' })).toMatchObject({ type: 'problem', error: 'waiting_for_confirmation' })
  const { tool_use_id, input_hash } = payload.tool_uses[0]
  const answer = (given: object) => ask({ type: 'answer', request_id, answer: given })
  const decide = (hash: string) =>
    answer({ kind: 'permission', decisions: [{ tool_use_id, input_hash: hash, behavior: 'allow' }] })
  expect(await decide('0'.repeat(64))).toMatchObject({ type: 'problem', error: 'input_changed' })
  expect(await decide(input_hash)).toMatchObject({ type: 'ack', of: 'answer', result: { pending: 0 } })
  await socket.until(({ type }) => type === 'Result')

  await expect.poll(async () => (await ask({ type: 'run' })).type).toBe('ack')
  await expect.poll(async () => (await ask({ type: 'pause' })).result?.status).toBe('paused')

  const task = await ask({ type: 'task', title: 'Slow', runnable: { type: 'Ticker', interval: 60, count: 60 } })
  expect(task).toMatchObject({ type: 'ack', of: 'task', result: { title: 'Slow', status: 'pending' } })
  const { id: task_id } = task.result
  expect(await ask({ type: 'cancel_task', task_id })).toMatchObject({
    of: 'cancel_task',
    result: { status: 'cancelled' },
  })
  expect(await ask({ type: 'cancel_task', task_id: request_id })).toMatchObject({ error: 'task_not_found' })
  const ofOtherKinds = [
    { kind: 'question', answers: { '0': 'yes' } },
    { kind: 'network', behavior: 'deny' },
  ]
  for (const given of ofOtherKinds)
    expect(await answer(given)).toMatchObject({ type: 'problem', error: 'invalid_request' })
  expect(await ask({ type: 'answer', request_id: task_id, answer: ofOtherKinds[0] })).toMatchObject({
    type: 'problem',
    error: 'request_not_found',
  })

  // A key is good for a message whichever way it is sent again.
  const message = { message: { role: 'user', content: 'only once' } }
  const posted = await ask({ type: 'message', ...message, idempotency_key: 'once' })
  expect(await ask({ type: 'message', ...message, idempotency_key: 'once' })).toMatchObject({ result: posted.result })
  const again = await server.call('POST', `/conversations/${id}/messages`, message, { 'idempotency-key': 'once' })
  expect(again.body).toEqual(posted.result)
  const other = { type: 'message', message: { role: 'user', content: 'another' }, idempotency_key: 'once' }
  expect(await ask(other)).toMatchObject({ type: 'problem', error: 'idempotency_mismatch' })
  const wrong = await ask({ type: 'message', message: { role: 'user', content: '' }, secret: 'hunter2hunter2' })
  expect(wrong).toMatchObject({ error: 'invalid_request', details: { issues: expect.any(Array) } })
  expect(JSON.stringify(wrong)).not.toContain('hunter2')
  socket.say('no json')
  expect(await socket.until((frame) => frame.type === 'problem' && frame.id === undefined)).toMatchObject({
    error: 'invalid_request',
  })
  const binary = socket.frames.length
  socket.ws.send(Buffer.from('{"type":"pause"}'))
  await expect.poll(() => socket.frames.slice(binary)).toMatchObject([{ type: 'problem', error: 'invalid_request' }])
  // Not one of them has ended it.
  expect(await ask({ type: 'pause' })).toMatchObject({ type: 'ack' })
  socket.close()
})

test('a client that loses its socket again and again during a run sees every event once', async () => {
  const steps = 30
  await using stage = await setStage({
    replies: [{ turns: [...Array.from({ length: steps }, (_, i) => bash(`echo ${i}`)), { text: 'Counted.' }] }],
  })
  const { server } = stage
  const id = await stage.create()
  let socket = await connect(server.url, `/conversations/${id}/ws?after_seq=0`)
  socket.say({ type: 'message', message: { role: 'user', content: 'count' }, run: true })
  const seen: { seq: number; type: string }[] = []
  for (let connections = 1; !seen.some(({ type }) => type === 'Result'); connections++) {
    await socket.until(({ type, seq }) => type === 'Result' || seq >= 5 * connections)
    socket.close()
    seen.push(...eventsIn(socket))
    socket = await connect(server.url, `/conversations/${id}/ws?after_seq=${seen.at(-1)!.seq}`)
  }
  socket.close()
  const listed = await stage.events(id)
  expect(seen).toEqual(listed.slice(0, seen.length))
  expect(listed.filter(({ type }) => type === 'ToolResult')).toHaveLength(steps)
})

test('a refused client gets the reason: as an HTTP error if possible, otherwise in a frame and by the code', async () => {
  await using stage = await setStage(
    { replies: [{ turns: [{ text: 'Hello.' }] }] },
    {
      env: { OPENHANDS_CORS_ORIGINS: 'https://page.example.com' },
    },
  )
  const { url } = stage.server
  const id = await stage.create()
  const path = `/conversations/${id}/ws`
  const nobody = '01920000-0000-7000-8000-000000000000'
  const refusals: [path: string, headers: Record<string, string>, status: number, error: string][] = [
    [path, { authorization: 'Bearer wrong-key-wrong-key' }, 401, 'unauthorized'],
    [path, { origin: 'https://other.example.com' }, 403, 'origin_refused'],
    [path, { origin: 'null' }, 403, 'origin_refused'],
    [`/conversations/${nobody}/ws`, {}, 404, 'conversation_not_found'],
    ['/nothing/ws', {}, 404, 'not_found'],
    ['/conversations/not-an-id/ws', {}, 400, 'invalid_request'],
    [`${path}?after_seq=99`, {}, 409, 'cursor_ahead'],
    [`${path}?types=Nonsense`, {}, 400, 'invalid_request'],
    [`${path}?something=else`, {}, 400, 'invalid_request'],
    ['/firehose?cursor=nonsense', {}, 400, 'invalid_cursor'],
    ['/alive', {}, 400, 'invalid_request'],
    [`/conversations/${id}/events`, {}, 400, 'invalid_request'],
  ]
  for (const [wanted, headers, status, error] of refusals) {
    await expect(connect(url, wanted, { headers }), `${wanted} ${JSON.stringify(headers)}`).rejects.toMatchObject({
      status,
      body: { error },
    })
  }
  for (const wanted of [path, '/conversations/ws']) {
    const answer = await stage.server.call('GET', wanted)
    expect(answer).toMatchObject({ status: 426, body: { error: 'upgrade_required' } })
    expect(answer.headers.get('upgrade')).toBe('websocket')
  }

  // Before it has shown a key a client learns nothing of what there is.
  const keys: [first: object | string, code: number][] = [
    [{ type: 'auth', token: 'wrong-key-wrong-key' }, 4401],
    [{ type: 'auth' }, 4401],
    [{ type: 'pause' }, 4401],
    ['{', 4401],
  ]
  for (const wanted of [path, `/conversations/${nobody}/ws`, `${path}?after_seq=99`]) {
    for (const [first, code] of keys) {
      const socket = await connectAs(url, wanted, {})
      socket.say(first)
      expect(await socket.closed, JSON.stringify(first)).toBe(code)
      expect(socket.frames).toMatchObject([{ type: 'error', error: 'unauthorized' }])
    }
  }
  for (const [wanted, code, error] of [
    [`/conversations/${nobody}/ws`, 4404, 'conversation_not_found'],
    [`${path}?after_seq=99`, 4409, 'cursor_ahead'],
  ] as const) {
    const socket = await connectAsBrowser(url, wanted, { origin: 'https://page.example.com' })
    expect(await socket.closed).toBe(code)
    expect(socket.frames).toMatchObject([{ type: 'error', error }])
  }
  const own = await connectAsBrowser(url, path, { origin: url })
  expect(await own.until(() => true)).toMatchObject({ type: 'ready' })
  own.close()
  expect(stage.server.output()).not.toContain(KEY)
  expect(stage.server.output()).not.toContain('wrong-key')
})

test('a client without a key has five seconds and four kilobytes', async () => {
  await using stage = await setStage({ replies: [{ turns: [{ text: 'Hello.' }] }] })
  const path = `/conversations/${await stage.create()}/ws`
  const silent = await connectAs(stage.server.url, path, {})
  const loud = await connectAs(stage.server.url, path, {})
  loud.say({ type: 'auth', token: KEY, filler: 'x'.repeat(5_000_000) })
  const talkative = await connectAs(stage.server.url, path, {})
  // What comes right behind the key, in the same packet, may be as large as anything.
  const { _socket: line } = talkative.ws as unknown as { _socket: Socket } // the library tells no other way
  line.cork()
  talkative.say({ type: 'auth', token: KEY })
  talkative.say({ type: 'message', id: 'large', message: { role: 'user', content: 'x'.repeat(1_000_000) } })
  line.uncork()
  expect(await talkative.until(({ type }) => type === 'ack')).toMatchObject({ id: 'large' })
  talkative.close()
  expect(await loud.closed).toBe(1009)
  expect(loud.frames).toEqual([])
  expect(await silent.closed).toBe(4401)
  expect(silent.frames).toMatchObject([{ type: 'error', error: 'unauthorized' }])
})

test('a server that stops says so on every socket, and does not wait for those that do not listen', async () => {
  await using stage = await setStage({ replies: [{ turns: [{ text: 'Hello.' }] }] })
  const { server } = stage
  const id = await stage.create()
  const socket = await connect(server.url, `/conversations/${id}/ws`)
  const firehose = await connect(server.url, '/firehose')
  const unknown = await connectAs(server.url, '/firehose', {})
  const deaf = await connect(server.url, `/conversations/${id}/ws`)
  await Promise.all([socket, firehose, deaf].map(({ until }) => until(({ type }) => type === 'ready')))
  deaf.ws.pause()
  expect(await server.stop('SIGTERM')).toBe(0)
  for (const each of [socket, firehose]) {
    expect(await each.closed).toBe(1001)
    expect(each.frames.at(-1)).toEqual({ type: 'server_closing' })
  }
  unknown.close()
  deaf.close()
})
