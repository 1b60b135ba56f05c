import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { connect } from 'node:net'
import type { FastifyReply } from 'fastify'
import { afterAll, describe, expect, test } from 'vitest'
import type { z } from 'zod'
import { ConversationView, ConversationPage } from '../../src/contract/conversation.ts'
import { Count } from '../../src/contract/values/page.ts'
import { PostedMessage, RunOutcome, RunStarted, StatusAnswer } from '../../src/contract/run.ts'
import { EventPage } from '../../src/contract/events-api.ts'
import { Event } from '../../src/contract/events/event.ts'
import { Alive, Info, Readiness } from '../../src/contract/server.ts'
import { closeSignal } from '../../src/http/request/close-signal.ts'
import { uuid7 } from '../../src/lib/uuid7.ts'
import { MODEL_KEY, call as toolCall, gate, until } from '../conversations/fixtures.ts'
import { subscribe } from '../support/stream.ts'
import type { Answer } from './fixtures.ts'
import { INFO, KEY, MAX_STREAMS, expectProblem, setHttp } from './fixtures.ts'
import { PATIENCE_MS } from '../support/patience.ts'

/** The answer, proven to be what the route's schema says. */
function checked<T extends z.ZodType>(answer: Answer, status: number, schema: T): z.infer<T> {
  expect(answer.status, answer.text).toBe(status)
  expect(schema.safeParse(answer.body).error).toBeUndefined()
  return answer.body as z.infer<T>
}

const hello = { message: { role: 'user', content: 'hello' }, run: true }

describe('the server itself', () => {
  test('lives, and is ready or says that it is not', async () => {
    await using http = await setHttp()
    expect(checked(await http.call('GET', '/alive'), 200, Alive)).toEqual({ status: 'ok' })
    expect(checked(await http.call('GET', '/ready'), 200, Readiness)).toEqual({ status: 'ok' })
    http.readiness.isReady = false
    const answer = await http.call('GET', '/ready')
    expect(checked(answer, 503, Readiness)).toEqual({ status: 'unavailable' })
    expect(answer.headers['retry-after']).toBe('1')
    expect((await http.call('GET', '/alive')).status).toBe(200)
  })

  test('reports its version, tools, isolation and limits', async () => {
    await using http = await setHttp()
    expect(checked(await http.call('GET', '/info'), 200, Info)).toEqual(INFO)
  })

  test('refuses work with 503 in the common error format once it stops', async () => {
    await using http = await setHttp()
    const id = await http.create()
    await http.bench.manager.close()
    for (const [method, url, body] of [
      ['POST', '/conversations', { llm_config: { model: 'm' } }],
      ['GET', `/conversations/${id}`],
      ['POST', `/conversations/${id}/messages`, hello],
      ['DELETE', `/conversations/${id}`],
    ] as const) {
      const answer = await http.call(method, url, body)
      expectProblem(answer, 503, 'unavailable')
      expect(answer.headers['retry-after']).toBe('1')
    }
  })
})

describe('conversations', () => {
  test('are created, fetched, listed, counted, configured and deleted', async () => {
    await using http = await setHttp()
    const llm_config = { model: 'scripted', base_url: http.bench.model.baseUrl, api_key: MODEL_KEY, seed: 1 }
    const created = await http.call('POST', '/conversations', {
      title: 'One',
      user_id: 'u',
      metadata: { a: [1] },
      llm_config,
      microagents: ['be kind'],
      initial_message: { role: 'user', content: 'first' },
    })
    const conversation = checked(created, 201, ConversationView)
    const { id } = conversation
    expect(created.headers['location']).toBe(`/conversations/${id}`)
    expect(conversation).toMatchObject({
      title: 'One',
      user_id: 'u',
      metadata: { a: [1] },
      llm_config: { model: 'scripted', api_key: '**********' },
      tools: ['Bash', 'FileEditor', 'TaskTracker'],
      max_iteration_per_run: 500,
      status: 'idle',
      last_seq: 2,
      usage: {},
      warnings: ['llm_config.seed is not used by this server'],
      state: {
        id,
        agent_finished: false,
        confirmation_mode: false,
        agent_waiting_for_confirmation: false,
        agent_paused: false,
        event_count: 2,
        activated_knowledge_microagents: ['be kind'],
      },
    })
    const { warnings: _, ...rest } = conversation
    expect(rest, 'a key that may write need not read what was said').not.toHaveProperty('preview')
    const view = { ...rest, preview: 'first' }
    expect(checked(await http.call('GET', `/conversations/${id}`), 200, ConversationView)).toEqual(view)
    expect(checked(await http.call('GET', '/conversations'), 200, ConversationPage)).toEqual({
      items: [view],
      next_page_id: null,
    })
    expect(checked(await http.call('GET', '/conversations/count?user_id=u'), 200, Count)).toEqual({ count: 1 })
    expect(checked(await http.call('GET', '/conversations/count?user_id=v'), 200, Count)).toEqual({ count: 0 })
    const configured = checked(
      await http.call('PUT', `/conversations/${id}/config`, {
        title: 'Two',
        llm_config: { api_key: '**********', temperature: 1 },
      }),
      200,
      ConversationView,
    )
    expect(configured).toMatchObject({
      title: 'Two',
      llm_config: { model: 'scripted', api_key: '**********', temperature: 1 },
    })
    expect(await http.call('DELETE', `/conversations/${id}`)).toMatchObject({ status: 204, text: '' })
    expect(checked(await http.call('GET', '/conversations/count'), 200, Count)).toEqual({ count: 0 })
  })

  test('take an id of the client’s, once', async () => {
    await using http = await setHttp()
    const id = uuid7()
    expect(await http.create({ id })).toBe(id)
    expectProblem(
      await http.call('POST', '/conversations', { id, llm_config: { model: 'm' } }),
      409,
      'conversation_exists',
    )
  })

  test.each([
    ['GET', ''],
    ['PUT', '/config', { title: 'x' }],
    ['DELETE', ''],
    ['POST', '/messages', hello],
    ['POST', '/run'],
    ['POST', '/pause'],
    ['PUT', `/attendance/${uuid7()}`],
    ['DELETE', `/attendance/${uuid7()}`],
    ['GET', '/events'],
    ['GET', '/events/count'],
    ['GET', `/events/${uuid7()}`],
    ['GET', '/events/stream'],
  ] as [string, string, unknown?][])(
    'that never existed are 404, deleted ones 410: %s %s',
    async (method, path, body) => {
      await using http = await setHttp()
      expectProblem(await http.call(method, `/conversations/${uuid7()}${path}`, body), 404, 'conversation_not_found')
      const id = await http.create()
      await http.call('DELETE', `/conversations/${id}`)
      expectProblem(await http.call(method, `/conversations/${id}${path}`, body), 410, 'conversation_deleted')
    },
  )
})

describe('messages and runs', () => {
  test('half of a character in a message is stored as U+FFFD, by every route that takes messages', async () => {
    await using http = await setHttp()
    const message = { role: 'user', content: [{ type: 'text', text: 'a \ud83d b' }] }
    const id = await http.create({ initial_message: message })
    await http.call('POST', `/conversations/${id}/messages`, { message, run: false })
    await http.call('POST', `/conversations/${id}/tasks`, { title: 't', runnable: { type: 'AgentRun', message } })
    const texts = async () => {
      const { body } = await http.call('GET', `/conversations/${id}/events?types=UserMessage`)
      return (body.items as { content: { text: string }[] }[]).map(({ content }) => content[0]!.text)
    }
    await expect.poll(texts, { timeout: PATIENCE_MS }).toEqual(Array.from({ length: 3 }, () => 'a \ufffd b'))
  })

  test('a message without run is kept; with run it starts one', async () => {
    await using http = await setHttp()
    const id = await http.create()
    const kept = checked(
      await http.call('POST', `/conversations/${id}/messages`, { ...hello, run: false }),
      202,
      PostedMessage,
    )
    expect(kept).toEqual({ event_id: expect.any(String), seq: 2 })
    const started = checked(await http.call('POST', `/conversations/${id}/messages`, hello), 202, PostedMessage)
    expect(started).toEqual({ event_id: expect.any(String), seq: 3, run_id: expect.any(String) })
    const event = checked(
      await http.call('GET', `/conversations/${id}/events/${started.event_id.toUpperCase()}`),
      200,
      Event,
    )
    expect(event).toMatchObject({ type: 'UserMessage', seq: 3, run: true })
    await until(await http.bench.manager.open(id), 'Result', (result) => result.run_id === started.run_id)
  })

  test('a run can be waited for, with steps and without a body; a second one is 409', async () => {
    const slow = gate('Slow')
    await using http = await setHttp({ tools: [slow.tool], script: [{ calls: [toolCall('Slow')] }, { text: 'Done.' }] })
    const id = await http.create()
    const { run_id } = checked(await http.call('POST', `/conversations/${id}/run`), 202, RunStarted)
    await slow.entered
    const again = await http.call('POST', `/conversations/${id}/run`, {})
    expectProblem(again, 409, 'already_running')
    expect(again.body.details).toEqual({ run_id })
    expect(
      checked(await http.call('POST', `/conversations/${id}/pause`, { interrupt: true }), 200, StatusAnswer),
    ).toEqual({ status: 'paused' })
    expect(checked(await http.call('POST', `/conversations/${id}/pause`), 200, StatusAnswer)).toEqual({
      status: 'paused',
    })
    const outcome = checked(
      await http.call('POST', `/conversations/${id}/run`, { wait: true, max_steps: 5 }),
      200,
      RunOutcome,
    )
    expect(outcome).toMatchObject({ status: 'idle', result: { stop_reason: 'completed', final_text: 'Done.' } })
  })

  test('a wait that takes too long answers that it is still running, after any fraction of a second', async () => {
    const slow = gate('Slow')
    await using http = await setHttp({ tools: [slow.tool], script: [{ calls: [toolCall('Slow')] }, { text: 'Done.' }] })
    const id = await http.create()
    const outcome = checked(
      await http.call('POST', `/conversations/${id}/run`, { wait: true, timeout: 0.0123 }),
      200,
      RunOutcome,
    )
    expect(outcome).toEqual({ run_id: expect.any(String), status: 'running' })
    slow.open()
  })
})

describe('events', () => {
  test('are listed in both orders, page by page, filtered and counted', async () => {
    await using http = await setHttp()
    const id = await http.create()
    await http.call('POST', `/conversations/${id}/messages`, { ...hello, run: false })
    checked(await http.call('POST', `/conversations/${id}/run`, { wait: true }), 200, RunOutcome)
    const path = `/conversations/${id}/events`
    const all = checked(await http.call('GET', path), 200, EventPage)
    expect(all.items.map((event) => event.seq)).toEqual([1, 2, 3, 4, 5, 6])
    expect(all.next_page_id).toBeNull()
    const seqs: number[] = []
    for (let page_id: string | null | undefined; page_id !== null;) {
      const page = checked(
        await http.call('GET', `${path}?order=desc&limit=4${page_id ? `&page_id=${page_id}` : ''}`),
        200,
        EventPage,
      )
      seqs.push(...page.items.map((event) => event.seq))
      page_id = page.next_page_id
    }
    expect(seqs).toEqual([6, 5, 4, 3, 2, 1])
    const filtered = checked(await http.call('GET', `${path}?types=UserMessage,Result&after_seq=2`), 200, EventPage)
    expect(filtered.items.map((event) => event.type)).toEqual(['Result'])
    expect(checked(await http.call('GET', `${path}/count`), 200, Count)).toEqual({ count: 6 })
    expect(checked(await http.call('GET', `${path}/count?source=agent`), 200, Count)).toEqual({ count: 1 })
    expectProblem(await http.call('GET', `${path}/${uuid7()}`), 404, 'event_not_found')
    expectProblem(await http.call('GET', `${path}/x`), 400, 'invalid_request')
  })
})

describe('the stream', () => {
  /** For requests that are refused. */
  const shared = setHttp()
  afterAll(async () => (await shared)[Symbol.asyncDispose]())

  test.each(['text/event-stream', '*/*', 'text/*', 'application/json, text/event-stream'])(
    'is given to a client that accepts %s',
    async (accept) => {
      await using http = await setHttp()
      const id = await http.create()
      const url = await http.listen()
      const abort = new AbortController()
      const response = await fetch(`${url}/conversations/${id}/events/stream?after_seq=0`, {
        headers: { authorization: `Bearer ${KEY}`, accept },
        signal: abort.signal,
      })
      expect(response.status).toBe(200)
      expect(Object.fromEntries(response.headers)).toMatchObject({
        'content-type': expect.stringMatching(/^text\/event-stream/),
        'cache-control': 'no-cache, no-transform',
        'x-accel-buffering': 'no',
      })
      const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
      let seen = ''
      while (!seen.includes('event: SystemInit')) seen += (await reader.read()).value ?? ''
      expect(seen).toMatch(/^retry: 1000\n(id: 1\nevent: SystemInit\n|event: SystemInit\nid: 1\n)/)
      abort.abort()
    },
  )

  test.each(['application/json', 'text/html', 'image/*'])('is 406 to one that accepts %s only', async (accept) => {
    const http = await shared
    const id = await http.create()
    expectProblem(
      await http.call('GET', `/conversations/${id}/events/stream`, undefined, { accept }),
      406,
      'not_acceptable',
    )
  })

  test.each([
    [{ 'last-event-id': 'seven' }, '', 400, 'invalid_cursor'],
    [{ 'last-event-id': '-1' }, '', 400, 'invalid_cursor'],
    [{ 'last-event-id': '9' }, '', 409, 'cursor_ahead'],
    [{}, '?after_seq=9', 409, 'cursor_ahead'],
  ] as const)('refuses a cursor that none of its events had: %j %s', async (headers, query, status, code) => {
    const http = await shared
    const id = await http.create()
    expectProblem(
      await http.call('GET', `/conversations/${id}/events/stream${query}`, undefined, headers),
      status,
      code,
    )
  })

  test('is refused beyond the limit per conversation, until one of them ends', async () => {
    await using http = await setHttp()
    const [id, other] = [await http.create(), await http.create()]
    const url = await http.listen()
    const open = (of: string) =>
      subscribe(url, `/conversations/${of}/events/stream`, { authorization: `Bearer ${KEY}` })
    const streams = await Promise.all(Array.from({ length: MAX_STREAMS }, () => open(id)))
    const stream = () => http.call('GET', `/conversations/${id}/events/stream`, undefined, { accept: '*/*' })
    const refused = await stream()
    expectProblem(refused, 429, 'too_many_streams')
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
    ;(await open(other)).close()
    streams[0]!.close()
    const another = () => open(id).then(streams.push.bind(streams), () => 0)
    await expect.poll(another).toBeGreaterThan(0)
    for (const each of streams) each.close()
  })

  test('of a disconnected client is ended: no subscriber is left', async () => {
    await using http = await setHttp()
    const conversation = await http.bench.manager.open(await http.create())
    const before = conversation.log.subscriberCount
    const url = await http.listen()
    const abort = new AbortController()
    const response = await fetch(`${url}/conversations/${conversation.id}/events/stream`, {
      headers: { authorization: `Bearer ${KEY}` },
      signal: abort.signal,
    })
    await response.body!.getReader().read()
    expect(conversation.log.subscriberCount).toBe(before + 1)
    abort.abort()
    await expect.poll(() => conversation.log.subscriberCount).toBe(before)
  })
})

test('work for a client is abandoned when the client disconnects, even before the work begins', async () => {
  const outcomes: boolean[] = []
  const done = Promise.withResolvers<void>()
  const server = createServer((_, response) => {
    const reply = { raw: response, request: {} } as unknown as FastifyReply
    const early = closeSignal(reply)
    response.once('close', () => {
      outcomes.push(early.aborted, closeSignal(reply).aborted)
      done.resolve()
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  server.once('request', () => socket.destroy())
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  await done.promise
  server.close()
  expect(outcomes).toEqual([true, true])
})
