/**
 * Many subscribers that come and go: each follows a conversation, or all of them, as an event stream or over a socket, is
 * gone at moments that a seed chooses, and comes back with its cursor. What it is sent is checked as it comes.
 */
import http from 'node:http'
import { WebSocket } from 'ws'
import type { Random } from './random.ts'
import { createRandom } from './random.ts'
import { PATIENCE_MS } from './patience.ts'
import { takeTime } from './take-time.ts'

export type ChurnPlan = {
  readonly url: string
  readonly key: string
  readonly conversations: readonly string[]
  readonly subscribers: number
  readonly seconds: number
  readonly seed: number
}

export type ChurnOutcome = {
  readonly connections: number
  readonly events: number
  /** Describes every gap and every duplicate, and each reader that did not come to the end. */
  readonly faults: readonly string[]
}

/** Of so many clients, one follows all conversations: each of these is sent everything. */
const FIREHOSES = 100
const WRITERS = 8
const LONGEST_STAY_MS = 4000
const LONGEST_ABSENCE_MS = 500
/** How long the last of them may take to come to the end. */
const CATCH_UP_MS = PATIENCE_MS

/** Resolves when every subscriber has come to the end of what it follows, and all are gone. */
export async function churn(plan: ChurnPlan): Promise<ChurnOutcome> {
  const random = createRandom(plan.seed)
  const subscribers = Array.from({ length: plan.subscribers }, (_, i) => {
    const isFirehose = i % FIREHOSES === 0
    const followed = isFirehose ? undefined : random.pick(plan.conversations)
    return createSubscriber(plan, `subscriber ${i}`, followed, i % 2 === 0 ? connectEvents : connectSocket)
  })
  const until = performance.now() + plan.seconds * 1000
  const writing = Array.from({ length: WRITERS }, () => write(plan, random, until))
  await Promise.all(subscribers.map((each, i) => each.comeAndGo(createRandom(plan.seed + i), until)))
  const heads = new Map<string, number>()
  const written = await Promise.all(writing)
  for (const [id, seq] of written.flatMap((one) => [...one.heads])) heads.set(id, Math.max(seq, heads.get(id) ?? 0))
  await Promise.all(subscribers.map((each) => each.comeToTheEnd(heads)))
  return {
    connections: subscribers.reduce((sum, each) => sum + each.connections(), 0),
    events: subscribers.reduce((sum, each) => sum + each.events(), 0),
    faults: [...written, ...subscribers].flatMap((each) => each.faults),
  }
}

/** Of so many writes, one forks a conversation. */
const FORKS = 20

type Written = {
  /** The last seq of each conversation that it received. */
  readonly heads: Map<string, number>
  readonly faults: string[]
}

/** Posts messages, forks conversations, and deletes forks while others ask for them. */
async function write({ url, key, conversations }: ChurnPlan, random: Random, until: number): Promise<Written> {
  const written: Written = { heads: new Map(), faults: [] }
  const { heads, faults } = written
  const forks: string[] = []
  const call = async (method: string, path: string, body?: object) => {
    const response = await fetch(`${url}/conversations/${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, body: (text === '' ? {} : JSON.parse(text)) as Record<string, unknown> }
  }
  const note = (id: string, seq: unknown) => heads.set(id, Math.max(Number(seq), heads.get(id) ?? 0))
  while (performance.now() < until) {
    const id = random.pick(conversations)
    if (random.below(FORKS) > 0) {
      const message = { role: 'user', content: 'x'.repeat(random.below(2000) + 1) }
      note(id, (await call('POST', `${id}/messages`, { message })).body['seq'])
    } else {
      const { body } = await call('POST', `${id}/fork`, {})
      forks.push(body['id'] as string)
      note(body['id'] as string, body['last_seq'])
    }
    const fork = forks[0]
    // Most are closed by then, so that they are deleted while they are opened.
    if (fork !== undefined && forks.length > 3) {
      forks.shift()
      const [, { status }] = await Promise.all([call('GET', fork), call('DELETE', fork), call('GET', fork)])
      heads.delete(fork)
      const after = await call('GET', fork)
      if (status !== 204 || after.status !== 410) faults.push(`deleted fork ${fork}: ${status}, then ${after.status}`)
    }
    await takeTime(random.below(20))
  }
  return written
}

export type Arrival = { readonly cursor: string; readonly conversation: string; readonly seq: number }

/** Answers how to break it off. `onEnd` is called once, whoever ended it. */
type Connect = (
  place: Pick<ChurnPlan, 'url' | 'key'>,
  path: string,
  onArrival: (arrival: Arrival) => void,
  onEnd: () => void,
) => () => void

function createSubscriber(plan: ChurnPlan, name: string, followed: string | undefined, connect: Connect) {
  const faults: string[] = []
  const reached = new Map<string, number>()
  let cursor = '0'
  let connections = 0
  let events = 0
  let onArrival = () => {}

  const take = (arrival: Arrival) => {
    const before = reached.get(arrival.conversation) ?? 0
    if (arrival.seq !== before + 1) faults.push(`${name}: ${arrival.conversation} ${arrival.seq} after ${before}`)
    reached.set(arrival.conversation, arrival.seq)
    cursor = arrival.cursor
    events += 1
    onArrival()
  }
  const come = () => {
    connections += 1
    let isGone = false
    const { promise: ended, resolve } = Promise.withResolvers<void>()
    // What is on its way when it leaves is not seen.
    const breakOff = connect(plan, pathOf(followed, connect, cursor), (arrival) => isGone || take(arrival), resolve)
    const leave = () => {
      isGone = true
      breakOff()
    }
    return { ended, leave }
  }
  const hasReached = (heads: ReadonlyMap<string, number>) =>
    (followed === undefined ? [...heads] : [[followed, heads.get(followed) ?? 1] as const]).every(
      ([id, head]) => (reached.get(id) ?? 0) >= head,
    )

  return {
    faults,
    connections: () => connections,
    events: () => events,
    async comeAndGo(random: Random, until: number) {
      while (performance.now() < until) {
        const { ended, leave } = come()
        // Some are gone before they are connected.
        await takeTime(random.below(8) === 0 ? random.below(3) : random.below(LONGEST_STAY_MS))
        leave()
        await ended
        await takeTime(random.below(LONGEST_ABSENCE_MS))
      }
    },
    async comeToTheEnd(heads: ReadonlyMap<string, number>) {
      const deadline = AbortSignal.timeout(CATCH_UP_MS)
      while (!hasReached(heads) && !deadline.aborted) {
        const { ended, leave } = come()
        const { promise: done, resolve } = Promise.withResolvers<void>()
        onArrival = () => hasReached(heads) && resolve()
        deadline.addEventListener('abort', () => resolve(), { once: true })
        await Promise.race([done, ended])
        leave()
        await ended
      }
      if (!hasReached(heads)) faults.push(`${name} did not come to the end: ${cursor}`)
    },
  }
}

function pathOf(followed: string | undefined, connect: Connect, cursor: string): string {
  if (followed === undefined) return `/firehose?cursor=${cursor}`
  return `/conversations/${followed}/${connect === connectSocket ? 'ws' : 'events/stream'}?after_seq=${cursor}`
}

/** Connects without an agent of HTTP: each has a connection of its own, which breaks when it leaves. */
export const connectEvents: Connect = ({ url, key }, path, onArrival, onEnd) => {
  const request = http.get(url + path, { agent: false, headers: { authorization: `Bearer ${key}` } })
  request.on('error', () => {}).on('close', onEnd)
  request.on('response', (response) => {
    let rest = ''
    response.setEncoding('utf8').on('error', () => {})
    response.on('data', (piece: string) => {
      const frames = (rest + piece).split('\n\n')
      rest = frames.pop()!
      for (const frame of frames) {
        const [, cursor, json] = /^id: (.*)\nevent: .*\ndata: (.*)$/m.exec(frame) ?? []
        if (json !== undefined) tell(cursor!, json, onArrival)
      }
    })
  })
  return () => void request.destroy()
}

export const connectSocket: Connect = ({ url, key }, path, onArrival, onEnd) => {
  const headers = { authorization: `Bearer ${key}` }
  const socket = new WebSocket(url.replace('http', 'ws') + path, { headers, perMessageDeflate: false })
  socket.on('error', () => {}).on('close', onEnd)
  socket.on('message', (data: Buffer) => {
    const json = data.toString()
    const [, cursor, seq] = /^\{(?:"cursor":"([^"]+)",)?"seq":(\d+)/.exec(json) ?? []
    if (seq !== undefined) tell(cursor ?? seq, json, onArrival)
  })
  return () => socket.terminate()
}

/** Reads the first bytes only: a thousand that parse what they get would be most of the work. */
function tell(cursor: string, json: string, onArrival: (arrival: Arrival) => void): void {
  const seq = /"seq":(\d+)/.exec(json)![1]!
  const conversation = /"conversation_id":"([^"]+)"/.exec(json)![1]!
  onArrival({ cursor, conversation, seq: Number(seq) })
}
