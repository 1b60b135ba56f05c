/**
 * Clients of each protocol that streams lose their connection, stop the agent, or have their server killed, at random moments.
 * `POINTS` says how often, `SEED` at which ones; a failure names its seed.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { setStage } from '../support/agent.ts'
import { A2aCutClient } from '../support/cut-clients/a2a.ts'
import { AcpCutClient } from '../support/cut-clients/acp.ts'
import { ChatCutClient } from '../support/cut-clients/chat.ts'
import { ResponsesCutClient } from '../support/cut-clients/responses.ts'
import { effort } from '../support/patience.ts'
import type { ProtocolClient } from '../support/protocol-clients.ts'
import { agUiClient, aiSdkClient, aiSdkSocketClient } from '../support/protocol-clients.ts'
import { createRandom } from '../support/random.ts'
import type { TestServer } from '../support/server.ts'

const POINTS = Number(process.env['POINTS'] ?? effort(20, 200))
const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000)
const AT_ONCE = 5
/** A turn has about as many events in most protocols. */
const EVENTS = 24
const LAST = 'The end of it.'
const ANSWER = `one two three four five|${LAST}`

const stage = await setStage(
  ({ body: { messages } }) => {
    if (messages.at(-1)?.role === 'tool') return { text: LAST, chunk_delay_ms: 20 }
    const calls = [{ name: 'Bash', arguments: { command: 'echo hi' } }]
    return { reasoning: 'Hm.', text: 'one two three four five', calls, chunk_delay_ms: 20 }
  },
  { env: { OPENHANDS_PROTOCOLS: 'openai,ai-sdk,ag-ui,acp,a2a' } },
)
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
    const client = make(server, crypto.randomUUID())
    const point = 1 + random.below(EVENTS)
    let count = 0
    const ended = client.say('work', () => {
      if (++count === point) onPoint(client)
    })
    return { client, point, ended }
  })
}

async function expectSameAndNext(client: ProtocolClient, words: string, answer: string): Promise<void> {
  expect(client.shown(), words).toEqual(await client.stored())
  await client.say('work')
  expect(client.answer(), words).toBe(answer)
  expect(client.shown(), words).toEqual(await client.stored())
}

type MakeClient = (server: TestServer, id: string) => ProtocolClient
const rounds = Array.from({ length: Math.ceil(POINTS / AT_ONCE) }, (_, at) => at)

describe.each<[string, MakeClient, string]>([
  ['AG-UI', agUiClient, ANSWER],
  ['the AI SDK', aiSdkClient, ANSWER],
  ['the AI SDK over a WebSocket', aiSdkSocketClient, ANSWER],
  ['Responses', (at) => new ResponsesCutClient(at), ANSWER],
  ['Chat Completions', (at, id) => new ChatCutClient(at, id), ANSWER],
  ['ACP', (at, id) => new AcpCutClient(at, id), ANSWER],
  ['A2A', (at, id) => new A2aCutClient(at, id), LAST], // a task has the last text
])('%s', (_, make, answer) => {
  test(`${POINTS} lost connections, seed ${SEED}: the answer is that of a client that stayed`, async () => {
    const random = createRandom(SEED)
    for (const _round of rounds)
      await Promise.all(
        beginSome(make, random, (client) => client.leave()).map(async ({ client, point, ended }) => {
          await ended
          await client.comeBack()
          const words = `left at event ${point}, seed ${SEED}`
          expect(client.answer(), words).toBe(answer)
          await expectSameAndNext(client, words, answer)
        }),
      )
  })

  test(`${POINTS} stops, seed ${SEED}: a client has what is stored, and its next message is answered`, async () => {
    const random = createRandom(SEED + 1)
    for (const _round of rounds) {
      const stops: Promise<void>[] = []
      await Promise.all(
        beginSome(make, random, (client) => stops.push(client.stop())).map(async ({ client, point, ended }) => {
          await ended
          await Promise.all(stops)
          await expectSameAndNext(client, `stopped at event ${point}, seed ${SEED}`, answer)
        }),
      )
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
          await expectSameAndNext(client, `killed, seed ${SEED}`, answer)
        }),
      )
    }
  })
})
