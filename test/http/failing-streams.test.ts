/** An `EventSource` gives up for ever on a status other than 200: what it gets when its stream cannot begin now. */
import { EventSource } from 'eventsource'
import { afterAll, expect, test } from 'vitest'
import { uuid7 } from '../../src/lib/uuid7.ts'
import { createJsonlStore } from '../../src/storage/files/log/jsonl-store.ts'
import type { BenchLogs } from '../conversations/fixtures.ts'
import { message } from '../events/fixtures.ts'
import { KEY, MAX_FIREHOSE_STREAMS, MAX_STREAMS, expectProblem, setHttp } from './fixtures.ts'

const home = { directory: '' }
let failure: string | undefined
const logs: BenchLogs = {
  home,
  create: (...args) => createJsonlStore(home).create(...args),
  copy: (...args) => createJsonlStore(home).copy(...args),
  async open(id) {
    if (failure !== undefined) throw Object.assign(new Error(`${failure}: input/output error`), { code: failure })
    return await createJsonlStore(home).open(id)
  },
  delete: (id) => createJsonlStore(home).delete(id),
}
const http = await setHttp({ logs, manager: { idle: { afterMs: 10, isShort: () => false } } })
afterAll(() => http[Symbol.asyncDispose]())
const url = await http.listen()

/** Of a conversation that is closed: the next request has to read its log. */
async function makeClosed(): Promise<string> {
  const id = await http.create()
  const { log } = await http.bench.manager.open(id)
  await expect.poll(() => log.ended).toBe('closing')
  return id
}

const EVENTS_ONLY = { accept: 'text/event-stream' }

test.each(['EIO', 'EMFILE'])(
  'an EventSource that reconnects while the log cannot be read (%s) continues as soon as it can be read',
  async (code) => {
    const id = await makeClosed()
    let attempts = 0
    const source = new EventSource(`${url}/conversations/${id}/events/stream?after_seq=0`, {
      fetch(input, init) {
        attempts++
        return fetch(input, { ...init, headers: { ...init.headers, authorization: `Bearer ${KEY}` } })
      },
    })
    const seen: string[] = []
    source.addEventListener('SystemInit', ({ lastEventId }) => seen.push(lastEventId))
    source.addEventListener('UserMessage', ({ lastEventId }) => seen.push(lastEventId))
    await expect.poll(() => seen).toEqual(['1'])
    const { log } = await http.bench.manager.open(id)
    failure = code
    const before = attempts
    await log.close('closing')
    await expect.poll(() => attempts).toBeGreaterThan(before + 1)
    failure = undefined
    await expect
      .poll(async () => {
        await (await http.bench.manager.open(id)).log.append([message('hello')]).catch(() => {})
        return seen.length
      })
      .toBeGreaterThan(1)
    expect(seen).toEqual(seen.map((_, at) => String(at + 1)))
    source.close()
  },
)

test('a log that cannot be read is a stream that ends; a client that takes JSON gets 500', async () => {
  const id = await makeClosed()
  failure = 'EIO'
  const path = `/conversations/${id}/events/stream`
  const asStream = await http.call('GET', path, undefined, EVENTS_ONLY)
  expect(asStream).toMatchObject({ status: 200, headers: { 'content-type': 'text/event-stream' } })
  expect(asStream.text).toContain('retry: 1000\nevent: error\ndata: {"type":"error","error":"storage_failed"')
  const both = { accept: 'text/event-stream, application/json' }
  expectProblem(await http.call('GET', path, undefined, both), 500, 'storage_failed')
  failure = undefined
})

test('too many streams are a stream that ends too, with the time to wait; a client that takes JSON gets 429', async () => {
  const id = await http.create()
  for (const [path, max] of [
    [`/conversations/${id}/events/stream`, MAX_STREAMS],
    ['/firehose', MAX_FIREHOSE_STREAMS],
  ] as const) {
    const headers = { authorization: `Bearer ${KEY}` }
    const open = await Promise.all(
      Array.from({ length: max }, async () => {
        const controller = new AbortController()
        await fetch(url + path, { headers, signal: controller.signal })
        return controller
      }),
    )
    const asStream = await http.call('GET', path, undefined, EVENTS_ONLY)
    expect(asStream).toMatchObject({ status: 200, headers: { 'content-type': 'text/event-stream' } })
    expect(asStream.text).toContain('retry: 5000\nevent: error\ndata: {"type":"error","error":"too_many_streams"')
    expectProblem(await http.call('GET', path), 429, 'too_many_streams')
    for (const controller of open) controller.abort()
  }
})

test('what does not pass by waiting keeps its status', async () => {
  const [id, deleted] = [await http.create(), await http.create()]
  await http.bench.manager.delete(deleted)
  const stream = (of: string, headers = {}) =>
    http.call('GET', `/conversations/${of}/events/stream`, undefined, { ...EVENTS_ONLY, ...headers })
  expectProblem(await stream(id, { authorization: 'Bearer wrong' }), 401, 'unauthorized')
  expectProblem(await stream(uuid7()), 404, 'conversation_not_found')
  expectProblem(await stream(deleted), 410, 'conversation_deleted')
  expectProblem(await stream(id, { 'last-event-id': '99' }), 409, 'cursor_ahead')
})
