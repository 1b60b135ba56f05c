/** The firehose: every event of every conversation once, over lost connections and `kill -9`. `SEED` chooses the moments. */
import { expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { effort } from '../support/patience.ts'
import { createRandom } from '../support/random.ts'
import { RefusedUpgrade, connect } from '../support/socket.ts'
import { isStarting, subscribe } from '../support/stream.ts'
import { takeTime } from '../support/take-time.ts'

const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000)
const KILLS = effort(2, 40)

type Seen = { readonly cursor: string; readonly event: any } // eslint-disable-line typescript/no-explicit-any

/** Follows from its last cursor on, over any number of lost connections. */
type Follower = { readonly seen: () => readonly Seen[]; readonly stop: () => Promise<void> }

type Connection = { readonly seen: () => readonly Seen[]; readonly ended: Promise<unknown>; readonly close: () => void }

const RETRY_MS = 20

function follow(connectAfter: (cursor: string) => Promise<Connection>): Follower {
  const connections: Connection[] = []
  const stopping = new AbortController()
  const seen = () => connections.flatMap((connection) => connection.seen())
  const following = (async () => {
    while (!stopping.signal.aborted) {
      const connection = await connectAfter(seen().at(-1)?.cursor ?? '0').catch(ignoreLostConnection)
      if (connection) connections.push(connection)
      if (stopping.signal.aborted) connection?.close()
      await (connection?.ended ?? takeTime(RETRY_MS))
    }
  })()
  following.catch(() => {}) // `stop` reports it
  return {
    seen,
    async stop() {
      stopping.abort()
      connections.at(-1)?.close()
      await following
    },
  }
}

/** What the server itself has refused is none, but for a start that goes on. */
function ignoreLostConnection(error: unknown): undefined {
  if (isStarting(error)) return
  if (error instanceof RefusedUpgrade || (error instanceof Error && error.message.startsWith('/firehose'))) throw error
}

const overEvents = ({ server }: Stage): Follower =>
  follow(async (cursor) => {
    const { frames, ended, close } = await subscribe(server.url, '/firehose', { 'last-event-id': cursor })
    const seen = () => frames.flatMap(({ id, data }) => (data.seq === undefined ? [] : { cursor: id, event: data }))
    return { seen, ended, close }
  })

const overSocket = ({ server }: Stage): Follower =>
  follow(async (after) => {
    const { frames, closed, close } = await connect(server.url, `/firehose?cursor=${after}`)
    const seen = () => frames.flatMap(({ cursor, ...event }) => (event.seq === undefined ? [] : { cursor, event }))
    return { seen, ended: closed, close }
  })

test(`over ${KILLS} kills, seed ${SEED}: both ways tell every event once, in each conversation by seq, and agree on the order`, async () => {
  const random = createRandom(SEED)
  await using stage = await setStage(({ body }) => {
    const step = body.messages.filter(({ role }) => role === 'assistant').length % 4
    return step < 3 ? bash(`echo ${step}`) : { text: 'A round.' }
  })
  const { server } = stage
  const ids = await Promise.all(Array.from({ length: 6 }, () => stage.create()))
  const followers = [overEvents(stage), overSocket(stage)]
  for (let kill = 0; kill < KILLS; kill++) {
    const posts = ids
      .slice(0, 4)
      .map((id) =>
        server
          .call('POST', `/conversations/${id}/messages`, { message: { role: 'user', content: 'go' }, run: true })
          .catch(() => {}),
      )
    await takeTime(random.below(250))
    await server.restart('SIGKILL')
    await Promise.all(posts)
    // Nobody runs this one: the firehose finds by itself what came into it.
    await server.call('POST', `/conversations/${ids[5]}/messages`, { message: { role: 'user', content: 'still' } })
  }
  const expected = (await Promise.all(ids.map((id) => stage.events(id)))).flat()
  const keyOf = (event: { conversation_id: string; seq: number }) => `${event.conversation_id} ${event.seq}`
  for (const { seen, stop } of followers) {
    await expect.poll(() => seen().length).toBeGreaterThanOrEqual(expected.length)
    await stop()
    expect(
      seen()
        .map(({ event }) => keyOf(event))
        .toSorted(),
    ).toEqual(expected.map(keyOf).toSorted())
    const byKey = new Map(expected.map((event) => [keyOf(event), event]))
    for (const { event } of seen()) expect(event).toEqual(byKey.get(keyOf(event)))
    for (const id of ids) {
      const seqs = seen().flatMap(({ event }) => (event.conversation_id === id ? event.seq : []))
      expect(seqs).toEqual(seqs.map((_, i) => i + 1))
    }
  }
  expect(followers[0]!.seen()).toEqual(followers[1]!.seen())
})

test('filters by type and by conversation, tells deltas on request, and that a conversation is gone', async () => {
  await using stage = await setStage({ replies: [{ turns: [{ text: 'Hello there.', chunk_delay_ms: 5 }] }] })
  const { server } = stage
  const [first, second] = [await stage.create(), await stage.create()]
  const all = await subscribe(server.url, '/firehose?types=Result&deltas=true')
  const mine = await connect(server.url, `/firehose?conversation_ids=${first}&deltas=true`)
  await mine.until(({ type }) => type === 'ready')
  for (const id of [first, second]) await stage.say(id, 'hi')
  await server.call('DELETE', `/conversations/${second}`)
  await server.call('DELETE', `/conversations/${first}`)
  await mine.until(({ type }) => type === 'conversation_deleted')
  await all.until(({ event, data }) => event === 'conversation_deleted' && data.conversation_id === first)

  expect(new Set(all.frames.map(({ event }) => event))).toEqual(
    new Set(['AssistantDelta', 'Result', 'conversation_deleted']),
  )
  expect(all.frames.filter(({ event }) => event === 'Result').map(({ data }) => data.conversation_id)).toEqual([
    first,
    second,
  ])
  const [, ...events] = mine.frames
  expect(new Set(events.map(({ conversation_id }) => conversation_id))).toEqual(new Set([first]))
  expect(events.map(({ type }) => type)).toEqual(
    expect.arrayContaining(['AssistantDelta', 'AssistantMessage', 'Result']),
  )
  const deltas = events.flatMap(({ type, text_delta }) => (type === 'AssistantDelta' ? text_delta : []))
  expect(deltas.join('')).toBe('Hello there.')
  for (const { close } of [all, mine]) close()

  // What is gone is passed over by those who come later, whose cursor goes on all the same.
  const third = await stage.create()
  const late = await subscribe(server.url, '/firehose?cursor=0')
  expect(await late.until(() => true)).toMatchObject({ event: 'SystemInit', data: { conversation_id: third } })
  late.close()
  const refused = await server.call('GET', '/firehose', undefined, { 'last-event-id': '7' })
  expect(refused).toMatchObject({ status: 400, body: { error: 'invalid_cursor' } })
})
