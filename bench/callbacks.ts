/** How fast events are delivered to callbacks that answer at once, compared with a loop that posts the same bodies and does nothing else. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { URL, startServerProcess } from './server-process.ts'
import { send } from './subjects.ts'
import type { Row } from './table.ts'
import { median } from './table.ts'

const EVENTS = 1000
const ROUNDS = 5
const MANY = 8

export async function benchCallbacks(): Promise<Row[]> {
  const home = await mkdtemp(join(tmpdir(), 'bench-callbacks-'))
  const { kill } = await startServerProcess(home, { OPENHANDS_CALLBACK_ALLOW: '127.0.0.1' })
  const bare = fork(join(import.meta.dirname, 'bare-posts.ts'))
  const receiver = await startReceiver()
  try {
    await once(bare, 'message')
    const path = await makeLog()
    const ids: string[] = []
    const rows: Row[] = []
    for (const count of [1, MANY]) {
      while (ids.length < count) ids.push(await register(path, receiver.url))
      const redeliver = () => ids.forEach((id) => void send(`${path}/callbacks/${id}/redeliver`, { from_seq: 1 }))
      // The bodies that the server itself sends.
      redeliver()
      const bodies = (await receiver.take(EVENTS * count)).bodies.slice(0, EVENTS)
      const postBare = () => void bare.send({ url: receiver.url, bodies, lanes: count })
      const [own, its]: [number[], number[]] = [[], []]
      for (let round = 0; round <= ROUNDS; round++) {
        redeliver()
        own.push((await receiver.take(EVENTS * count)).perSecond)
        postBare()
        its.push((await receiver.take(EVENTS * count)).perSecond)
      }
      rows.push(rowOf(count, median(own.slice(1)), median(its.slice(1))))
    }
    return rows
  } finally {
    bare.kill()
    await kill()
    receiver.close()
    await rm(home, { recursive: true, force: true, maxRetries: 3 })
  }
}

function rowOf(count: number, rate: number, its: number): Row {
  const what = count === 1 ? 'one callback, one after the other' : `${count} callbacks at once`
  return [
    `events delivered to ${what}, signed`,
    `${rate.toFixed(0)}/s`,
    `${(rate / its).toFixed(2)} of a bare loop that posts the same bodies (${its.toFixed(0)}/s)`,
  ]
}

/** Answers the URL of a conversation with so many events. */
async function makeLog(): Promise<string> {
  const llm_config = { model: 'none', base_url: 'http://127.0.0.1:9/v1', api_key: 'bench-model-key' }
  const { id } = JSON.parse(await send(`${URL}/conversations`, { llm_config })) as { id: string }
  const path = `${URL}/conversations/${id}`
  const message = { message: { role: 'user', content: 'x'.repeat(300) } }
  for (let seq = 2; seq <= EVENTS; seq++) await send(`${path}/messages`, message)
  return path
}

async function register(path: string, url: string): Promise<string> {
  return (JSON.parse(await send(`${path}/callbacks`, { url })) as { id: string }).id
}

/** `take` resolves when so many posts have come: their bodies, and how many a second from the first to the last. */
async function startReceiver() {
  let bodies: string[] = []
  let wanted = Infinity
  let began = 0
  let onAll = (_ended: number) => {}
  const server = http.createServer((request, response) => {
    let text = ''
    request.setEncoding('utf8').on('data', (piece: string) => (text += piece))
    request.on('end', () => {
      response.writeHead(204).end()
      if (bodies.length === 0) began = performance.now()
      bodies.push(text)
      if (bodies.length === wanted) onAll(performance.now())
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    async take(count: number) {
      wanted = count
      const { promise, resolve } = Promise.withResolvers<number>()
      onAll = resolve
      const ended = await promise
      const taken = bodies
      bodies = []
      return { bodies: taken, perSecond: ((count - 1) * 1000) / (ended - began) }
    },
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}
