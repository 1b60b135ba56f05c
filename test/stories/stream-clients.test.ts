/** The event stream as standard clients read it: over cut connections, a stop and a crash of the server, each event once. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { EventSource } from 'eventsource'
import { createEventSource } from 'eventsource-client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startCutProxy } from '../support/cut-proxy.ts'
import { postOnce } from '../support/post-once.ts'
import { KEY, startServer } from '../support/server.ts'
import type { TestServer } from '../support/server.ts'
import { takeTime } from '../support/take-time.ts'

let server: TestServer
let proxy: Awaited<ReturnType<typeof startCutProxy>>
beforeAll(async () => {
  server = await startServer({ env: { LLM_MODEL: 'none' } })
  proxy = await startCutProxy(new URL(server.url))
})
afterAll(async () => {
  await proxy.close()
  await server[Symbol.asyncDispose]()
})

const headers = { authorization: `Bearer ${KEY}` }

type Seen = { readonly type: string; readonly data: string }
/** Reports everything that its library dispatches; returns how to stop it. */
type Client = (url: string, see: (event: Seen) => void) => () => void

const CLIENTS: Record<string, Client> = {
  eventsource(url, see) {
    const source = new EventSource(url, {
      fetch: (input, init) => fetch(input, { ...init, headers: { ...init.headers, ...headers } }),
    })
    for (const type of ['message', 'SystemInit', 'ClientEvent', 'StatusUpdate'])
      source.addEventListener(type, ({ data }: { data: string }) => see({ type, data }))
    return () => source.close()
  },
  'eventsource-client'(url, see) {
    const source = createEventSource({
      url,
      headers,
      onMessage: ({ event = 'message', data }) => see({ type: event, data }),
    })
    return () => source.close()
  },
}

const LAST_FRAMES = new Set(['server_closing', 'lagged', 'deleted'])

test('each client is shown each event once and in order, over cut connections, SIGTERM and kill -9', async () => {
  const { body } = await server.call('POST', '/conversations', {})
  const path = `/conversations/${body.id}/events/stream?after_seq=0`
  const clients = Object.entries(CLIENTS).map(([name, follow]) => {
    const seen: Seen[] = []
    const stop = follow(proxy.url + path, (event) => seen.push(event))
    const posted = () => seen.filter(({ type }) => type === 'ClientEvent').map(({ data }) => nameIn(data))
    return { name, seen, stop, posted }
  })
  const names: string[] = []
  const postUntil = async (count: number) => {
    while (names.length < count) await postOnce(server, body.id, names[names.push(`event-${names.length}`) - 1]!)
    for (const { posted } of clients) await expect.poll(() => posted().length).toBe(count)
  }
  await postUntil(5)
  for (const disturb of [
    async () => proxy.cut(),
    () => server.restart('SIGTERM'),
    () => server.restart('SIGKILL'),
    async () => proxy.cut(),
  ]) {
    await Promise.all([disturb(), postUntil(names.length + 8)])
  }
  for (const { name, seen, stop, posted } of clients) {
    stop()
    expect(posted(), name).toEqual(names)
    // Nothing else was dispatched: no comment, no `retry`, no empty event.
    expect(seen.filter(({ data, type }) => data === '' && !LAST_FRAMES.has(type))).toEqual([])
  }
})

const nameIn = (data: string) => (JSON.parse(data) as { name: string }).name

test('a client that asks while the server starts waits for it, and one that asks while it stops loses its connection', async () => {
  const { body } = await server.call('POST', '/conversations', {})
  const url = `${server.url}/conversations/${body.id}/events/stream?after_seq=0`
  const accept = { ...headers, accept: 'text/event-stream' }
  const statuses = new Set<number>()
  const over = new AbortController()
  const asking = (async () => {
    while (!over.signal.aborted) {
      const abort = new AbortController()
      await fetch(url, { headers: accept, signal: abort.signal }).then(
        ({ status }) => statuses.add(status),
        () => undefined,
      )
      abort.abort()
      await takeTime(10)
    }
  })()
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) await server.restart(signal)
  over.abort()
  await asking
  expect([...statuses]).toEqual([200])
})

test('the connection of a stream ends with it', async () => {
  const { body } = await server.call('POST', '/conversations', {})
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
  socket.write(
    `GET /conversations/${body.id}/events/stream HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${KEY}\r\nAccept: text/event-stream\r\n\r\n`,
  )
  await expect.poll(() => text).toContain('retry: 1000')
  expect(text.toLowerCase()).toContain('connection: close')
  const closed = once(socket, 'close')
  await server.call('DELETE', `/conversations/${body.id}`)
  await closed
  expect(text).toContain('event: deleted')
})
