/**
 * The readers of a soak: they follow one conversation or all of them, over an event stream or a socket, go at any moment,
 * and come back with their cursor. Some connect and read nothing.
 */
import { once } from 'node:events'
import { connect as connectTcp } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Arrival } from '../support/churn.ts'
import { connectEvents, connectSocket } from '../support/churn.ts'
import { KEY } from '../support/server.ts'
import type { World } from './world.ts'

const LONGEST_STAY_MS = 3000
const LONGEST_ABSENCE_MS = 300

/** Resolves when `signal` is aborted, and it has gone. */
export async function followOne(world: World, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const id = world.pick()
    if (id === undefined) {
      await sleep(LONGEST_ABSENCE_MS)
      continue
    }
    const isSocket = world.random.below(2) === 0
    let last = world.random.below(4) === 0 ? undefined : 0
    for (let visits = world.random.below(3); visits >= 0 && !signal.aborted; visits--) {
      const path = `/conversations/${id}/${isSocket ? 'ws' : 'events/stream'}?deltas=true`
      await visit(world, signal, isSocket, path + (last === undefined ? '' : `&after_seq=${last}`), ({ seq }) => {
        if (last !== undefined && seq !== last + 1) world.fail(`a reader of ${id} got ${seq} after ${last}`)
        last = seq
      })
    }
  }
}

/** The same for the events of all conversations. Begin it before there is a conversation. */
export async function followAll(world: World, signal: AbortSignal, isSocket: boolean): Promise<void> {
  const reached = new Map<string, number>()
  let cursor = '0'
  while (!signal.aborted) {
    await visit(world, signal, isSocket, `/firehose?cursor=${cursor}`, (arrival) => {
      const before = reached.get(arrival.conversation) ?? 0
      if (arrival.seq !== before + 1)
        world.fail(
          `a reader of the firehose got an event out of order: ${arrival.conversation} ${arrival.seq} after ${before}`,
        )
      reached.set(arrival.conversation, arrival.seq)
      ;({ cursor } = arrival)
    })
  }
}

/** Connects, and reads nothing until the server has given up or it is bored. */
export async function stall(world: World, signal: AbortSignal): Promise<void> {
  const { hostname, port } = new URL(world.url)
  while (!signal.aborted) {
    const id = world.pick()
    const path = world.random.below(2) === 0 || id === undefined ? '/firehose' : `/conversations/${id}/events/stream`
    const socket = connectTcp({ host: hostname, port: Number(port) }).on('error', () => {})
    socket.pause()
    socket.write(`GET ${path}?deltas=true HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${KEY}\r\n\r\n`)
    await sleep(world.random.below(2 * LONGEST_STAY_MS), undefined, { signal }).catch(() => {})
    socket.destroy()
    await once(socket, 'close')
  }
}

async function visit(
  world: World,
  signal: AbortSignal,
  isSocket: boolean,
  path: string,
  onArrival: (arrival: Arrival) => void,
): Promise<void> {
  const { promise: ended, resolve } = Promise.withResolvers<void>()
  let isGone = false
  const connect = isSocket ? connectSocket : connectEvents
  const leave = connect({ url: world.url, key: KEY }, path, (arrival) => isGone || onArrival(arrival), resolve)
  world.operations += 1
  // Some are gone before they are connected. Who follows a deleted conversation is sent away.
  const stayMs = world.random.below(8) === 0 ? world.random.below(3) : world.random.below(LONGEST_STAY_MS)
  await Promise.race([sleep(stayMs, undefined, { signal }).catch(() => {}), ended])
  isGone = true
  leave()
  await ended
  await sleep(world.random.below(LONGEST_ABSENCE_MS))
}
