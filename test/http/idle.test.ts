/** Over HTTP, a conversation stays open for as long as a request, stream or socket is about it, and no longer. */
import { expect, test } from 'vitest'
import { connectAs } from '../support/socket.ts'
import type { HttpBench } from './fixtures.ts'
import { KEY, setHttp } from './fixtures.ts'

const AFTER_MS = 20
const headers = { authorization: `Bearer ${KEY}` }
/** Resolves when others that became idle later have been closed: by then, this one was looked at. */
async function looks(http: HttpBench): Promise<void> {
  for (let times = 0; times < 3; times++) {
    const { log } = await http.bench.manager.open(await http.create())
    await expect.poll(() => log.ended).toBe('closing')
  }
}

const setIdle = () => setHttp({ manager: { idle: { afterMs: AFTER_MS, isShort: () => false } } })

test.each(['a stream', 'a socket'])('%s keeps its conversation open, and lets it close when it ends', async (kind) => {
  await using http = await setIdle()
  const url = await http.listen()
  const id = await http.create()
  const path = `/conversations/${id}/${kind === 'a stream' ? 'events/stream' : 'ws'}`
  const abort = new AbortController()
  const stream = kind === 'a stream' ? await fetch(url + path, { headers, signal: abort.signal }) : undefined
  const socket = kind === 'a stream' ? undefined : await connectAs(url, path, { headers })
  await socket?.until(({ type }) => type === 'ready')
  const { log } = await http.bench.manager.open(id)
  await looks(http)
  expect(log.ended).toBeUndefined()
  const posted = await http.call('POST', `/conversations/${id}/messages`, {
    message: { role: 'user', content: 'seen' },
  })
  expect(posted.status).toBe(202)
  if (stream) {
    let text = ''
    for await (const bytes of stream.body!) {
      text += Buffer.from(bytes).toString()
      if (text.includes('seen')) break
    }
  }
  await socket?.until(({ type }) => type === 'UserMessage')
  abort.abort()
  socket?.close()
  await expect.poll(() => log.ended).toBe('closing')
})

test('a request opens it again and lets it close afterwards, whatever the response', async () => {
  await using http = await setIdle()
  const id = await http.create()
  for (const path of ['', '/events', '/events?limit=wrong', '/files/none']) {
    const { log } = await http.bench.manager.open(id)
    expect((await http.call('GET', `/conversations/${id}${path}`)).status).toBeLessThan(500)
    await expect.poll(() => log.ended).toBe('closing')
  }
})

test('an announcement that a person has it open does not open it', async () => {
  await using http = await setIdle()
  const { manager } = http.bench
  const id = await http.create()
  await expect.poll(() => manager.openCount).toBe(0)
  const announced = await http.call('PUT', `/conversations/${id}/attendance/${crypto.randomUUID()}`)
  expect([announced.status, manager.openCount]).toEqual([204, 0])
  expect((await http.call('GET', `/conversations/${id}`)).body).toMatchObject({ attended: true })
})
