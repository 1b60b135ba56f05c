/** Conversations of requests without a thread that outlive their answer. */
import { expect, test } from 'vitest'
import { CreateConversation } from '../../src/contract/conversation.ts'
import { LeftoverAges } from '../../src/protocols/openai/leftover-ages.ts'
import { removeLeftovers } from '../../src/protocols/openai/leftovers.ts'
import { isTemporaryId, temporaryId } from '../../src/protocols/openai/temporary-id.ts'
import { createBodyHash } from '../../src/security/body-hash.ts'
import { endOf, setBench } from '../conversations/fixtures.ts'

const HOUR = 60 * 60 * 1000
const hashBody = createBodyHash(['key-material-of-the-tests'])

test('only the server can make the id of a conversation that goes with its answer', () => {
  const ids = Array.from({ length: 100 }, () => temporaryId(hashBody, 'chat'))
  expect(new Set(ids).size).toBe(100)
  for (const id of ids) {
    expect(id).toMatch(/^[\da-f]{8}-[\da-f]{4}-8[\da-f]{3}-8[\da-f]{3}-[\da-f]{12}$/)
    expect(isTemporaryId(id, hashBody, 'chat')).toBe(true)
    expect(isTemporaryId(`${id.slice(0, -1)}${id.endsWith('0') ? '1' : '0'}`, hashBody, 'chat')).toBe(false)
    expect(isTemporaryId(id, createBodyHash(['other']), 'chat')).toBe(false)
    expect(isTemporaryId(id, createBodyHash(['newer', 'key-material-of-the-tests']), 'chat')).toBe(true)
  }
})

test('what is left of them is removed after a day, unless somebody uses it', async () => {
  await using bench = await setBench({ script: [{ text: 'Done.' }] })
  const [left, used, ended] = [1, 2, 3].map(() => temporaryId(hashBody, 'chat'))
  const ids: string[] = []
  for (const id of [left, used, ended, undefined]) {
    const llm_config = { model: 'scripted', base_url: bench.model.baseUrl, api_key: 'key' }
    const view = await bench.manager.create({ ...CreateConversation.parse({ llm_config }), ...(id && { id }) })
    ids.push(view.id)
    const conversation = await bench.manager.open(view.id)
    const key = `chat ${'0'.repeat(32)} ${'0'.repeat(16)} unique`
    // A request would have removed what ended by itself: somebody has answered what it waited for.
    const { run_id } = await conversation.post({ message: 'hello', run: id === ended }, { key, bodyHash: 'hash' })
    if (run_id !== undefined) await endOf(conversation, run_id)
  }
  await (await bench.manager.open(used!)).post({ message: 'from another API', run: false })
  const failures: unknown[] = []
  const clocks = { time: Date.now(), elapsed: 0 }
  const agesOf = (trustsClock: boolean) =>
    new LeftoverAges({ trustsClock }, { now: () => clocks.time, elapsed: () => clocks.elapsed })
  const remove = (ages: LeftoverAges) =>
    removeLeftovers(bench.manager, { hashBody, ages, onFailure: (error) => failures.push(error) })
  const isUntouched = () => ids.every((id) => bench.known.has(id))
  const own = agesOf(true)
  await remove(own)
  clocks.time += 1000 * HOUR
  await remove(own)
  expect(isUntouched(), 'the clock jumped').toBe(true)
  clocks.elapsed += 23 * HOUR
  await remove(own)
  expect(isUntouched(), 'it has seen them for less than a day').toBe(true)
  const among = agesOf(false)
  await remove(among)
  expect(isUntouched(), 'the times may be of the clocks of other instances').toBe(true)
  clocks.time -= 977 * HOUR
  await remove(agesOf(true))
  expect(isUntouched(), 'a former process has left them 23 hours ago').toBe(true)
  clocks.elapsed += 24 * HOUR
  await remove(among)
  expect(ids.map((id) => bench.known.has(id))).toEqual([false, true, true, true])
  expect(failures).toEqual([])
})
