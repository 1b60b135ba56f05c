import { readFile, readdir, readlink } from 'node:fs/promises'
import { once } from 'node:events'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { bash, setStage } from '../support/agent.ts'
import type { TestServer } from '../support/server.ts'
import { KEY } from '../support/server.ts'
import { effort } from '../support/patience.ts'

const READERS = effort(60, 240)
const STALLED = effort(20, 60)
const STEPS = 100
/** Of output a step: in all, more than the kernel's buffers take for a reader that never reads. */
const OUTPUT_BYTES = 28_000
/** What the server may take for all of them together, over what the same run took with one. */
const MAX_GROWTH_MB = 150

/** A subscriber without a decoder: 300 that parse what they get would be most of the work. */
type Raw = { readonly socket: Socket; readonly text: () => string }

async function open({ url }: TestServer, path: string): Promise<Raw> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  await once(socket, 'connect')
  const pieces: Buffer[] = []
  socket.on('data', (piece: Buffer) => pieces.push(piece)).on('error', () => {})
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\nAccept: text/event-stream\r\n\r\n`)
  const text = () => Buffer.concat(pieces).toString()
  await expect.poll(text).toContain('retry: 1000')
  return { socket, text }
}

async function socketsOf(pid: number): Promise<number> {
  const names = await readdir(`/proc/${pid}/fd`)
  const targets = await Promise.all(names.map((name) => readlink(`/proc/${pid}/fd/${name}`).catch(() => '')))
  return targets.filter((target) => target.startsWith('socket:')).length
}

const megabytesOf = async (pid: number) =>
  (Number(/VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))![1]) * 1024) / 1e6

const seqsIn = (text: string) => [...text.matchAll(/^id: (\d+)\nevent:/gm)].map((match) => Number(match[1]))

test(`${READERS} subscribers and ${STALLED} that never read hold up neither the agent nor each other, in bounded memory`, async () => {
  const step = (n: number) => bash(`head -c ${OUTPUT_BYTES} /dev/zero | tr '\\0' x # ${n}`)
  const turns = [...Array.from({ length: STEPS }, (_, n) => step(n)), { text: 'Done with all of it.' }]
  await using stage = await setStage({ replies: [{ turns }] }, { env: { OPENHANDS_STREAM_BUFFER_BYTES: '65536' } })
  const { server } = stage
  await stage.say(await stage.create(), 'go')
  const id = await stage.create()
  const before = { sockets: await socketsOf(server.pid), megabytes: await megabytesOf(server.pid) }

  const stream = `/conversations/${id}/events/stream?after_seq=0`
  const openAll = (count: number, path: string) => Promise.all(Array.from({ length: count }, () => open(server, path)))
  const stalled = await openAll(STALLED, `${stream}&deltas=true`)
  for (const { socket } of stalled) socket.pause()
  const readers = await openAll(READERS, `${stream}&types=StatusUpdate,ToolUse,Result`)

  await server.call('POST', `/conversations/${id}/messages`, { message: { role: 'user', content: 'go' }, run: true })
  for (const { text } of readers) await expect.poll(text, { interval: 100 }).toContain('event: Result')

  // The run is over, and none of the stalled has read a byte more than its greeting.
  const events = await stage.events(id)
  expect(events.find((event) => event.type === 'Result')).toMatchObject({ stop_reason: 'completed' })
  // Polled: what the run left for the collector is no memory that is held.
  const growth = async () => (await megabytesOf(server.pid)) - before.megabytes
  await expect.poll(growth, { interval: 500 }).toBeLessThan(MAX_GROWTH_MB)
  const wanted = events.filter(({ type }) => ['StatusUpdate', 'ToolUse', 'Result'].includes(type))
  for (const { text } of readers) {
    await expect.poll(() => seqsIn(text()), { interval: 100 }).toEqual(wanted.map((event) => event.seq))
  }

  // Back at their sockets, they find what the kernel has kept, without a gap, and that they were too slow.
  const back = stalled.slice(1) // one goes away without ever having read
  for (const { socket } of back) socket.resume()
  for (const { text } of back) {
    await expect.poll(() => text().slice(-100), { interval: 100 }).toContain('event: lagged')
    const seqs = seqsIn(text())
    expect(seqs).toEqual(seqs.map((_, i) => i + 1))
    expect(seqs.length).toBeLessThan(events.length)
  }

  for (const { socket } of [...readers, ...stalled]) socket.destroy()
  // A few more are to its model, its shell and this client.
  await expect.poll(() => socketsOf(server.pid)).toBeLessThan(before.sockets + 10)
})
