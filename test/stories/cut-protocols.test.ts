/**
 * Clients of AG-UI and the AI SDK that lose their connection, stop the agent, or have their server killed, at random moments. `POINTS`
 * says how often, `SEED` at which ones; a failure names its seed.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { setStage } from '../support/agent.ts'
import { effort } from '../support/patience.ts'
import type { ProtocolClient } from '../support/protocol-clients.ts'
import { agUiClient, aiSdkClient } from '../support/protocol-clients.ts'
import { createRandom } from '../support/random.ts'

const POINTS = Number(process.env['POINTS'] ?? effort(20, 200))
const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000)
const AT_ONCE = 5
/** A turn has about as many events in both protocols. */
const EVENTS = 24
const ANSWER = 'one two three four five|The end of it.'

const stage = await setStage(({ body: { messages } }) => {
  if (messages.at(-1)?.role === 'tool') return { text: 'The end of it.', chunk_delay_ms: 20 }
  const calls = [{ name: 'Bash', arguments: { command: 'echo hi' } }]
  return { reasoning: 'Hm.', text: 'one two three four five', calls, chunk_delay_ms: 20 }
}, {})
afterAll(() => stage[Symbol.asyncDispose]())
const { server } = stage

beforeAll(async () => {
  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
  const profile = { tools: ['Bash'], llm_config, permission_mode: 'bypass' }
  expect(await server.call('PUT', '/profiles/coder', profile)).toMatchObject({ status: 201 })
})

/** Begins turns in new threads; `onPoint` is called at a random event of each, or at its end. */
function beginSome(
  make: MakeClient,
  random: ReturnType<typeof createRandom>,
  onPoint: (client: ProtocolClient) => void,
) {
  return Array.from({ length: AT_ONCE }, () => {
    const client = make(server.url, crypto.randomUUID())
    const point = 1 + random.below(EVENTS)
    let count = 0
    const ended = client.say('work', () => {
      if (++count === point) onPoint(client)
    })
    return { client, point, ended }
  })
}

async function expectSameAndNext(client: ProtocolClient, words: string): Promise<void> {
  expect(client.shown(), words).toEqual(await client.stored())
  await client.say('work')
  expect(client.answer(), words).toBe(ANSWER)
  expect(client.shown(), words).toEqual(await client.stored())
}

type MakeClient = (url: string, id: string) => ProtocolClient
const rounds = Array.from({ length: Math.ceil(POINTS / AT_ONCE) }, (_, at) => at)

describe.each<[string, MakeClient]>([
  ['AG-UI', agUiClient],
  ['the AI SDK', aiSdkClient],
])('%s', (_, make) => {
  test(`${POINTS} lost connections, seed ${SEED}: the answer is that of a client that stayed`, async () => {
    const random = createRandom(SEED)
    for (const _round of rounds)
      await Promise.all(
        beginSome(make, random, (client) => client.leave()).map(async ({ client, point, ended }) => {
          await ended
          await client.comeBack()
          const words = `left at event ${point}, seed ${SEED}`
          expect(client.answer(), words).toBe(ANSWER)
          await expectSameAndNext(client, words)
        }),
      )
  })

  test(`${POINTS} stops, seed ${SEED}: a client has what is stored, and its next message is answered`, async () => {
    const random = createRandom(SEED + 1)
    for (const _round of rounds) {
      const stops: Promise<Response>[] = []
      await Promise.all(
        beginSome(make, random, (client) => stops.push(client.stop())).map(async ({ client, point, ended }) => {
          await ended
          await Promise.all(stops)
          await expectSameAndNext(client, `stopped at event ${point}, seed ${SEED}`)
        }),
      )
      expect((await Promise.all(stops)).map(({ status }) => status)).toEqual(stops.map(() => 200))
    }
  })

  test(`${POINTS} answers that a kill ends, seed ${SEED}: a client that comes back has what is stored, and its next message is answered`, async () => {
    const random = createRandom(SEED + 2)
    for (const _round of rounds) {
      const moment = Promise.withResolvers<void>()
      let reached = 0
      const some = beginSome(make, random, () => {
        if (++reached === 2) moment.resolve()
      })
      await Promise.race([moment.promise, Promise.all(some.map(({ ended }) => ended))])
      await server.restart('SIGKILL')
      await Promise.all(
        some.map(async ({ client, ended }) => {
          await ended
          await client.comeBack()
          await expectSameAndNext(client, `killed, seed ${SEED}`)
        }),
      )
    }
  })
})
