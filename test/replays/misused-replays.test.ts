/** Replays whose clients interfere: with ids of forks, deletions, many requests at once, and ends of the server. */
import * as fs from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ForkConversation } from '../../src/contract/conversation.ts'
import { setBench } from '../conversations/fixtures.ts'
import { asked, createReplays, pricedLlm, untilReplay } from './fixtures.ts'

const anyone = () => true
const USAGE = { prompt_tokens: 90, completion_tokens: 10 }

/** The model answers when it is released. */
async function openHeld() {
  const asking = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  const bench = await setBench({
    async script() {
      asking.resolve()
      await released.promise
      return { text: 'Hello.', usage: USAGE }
    },
  })
  const replays = createReplays(bench)
  const original = await bench.converse({ llm_config: pricedLlm(bench) })
  await original.post({ message: 'go', run: false })
  return {
    bench,
    replays,
    original,
    asking: asking.promise,
    release: released.resolve,
    post: (fields: object = {}) => replays.post(asked({ conversation_ids: [original.id], ...fields })),
    async [Symbol.asyncDispose]() {
      released.resolve()
      await replays.close()
      await bench[Symbol.asyncDispose]()
    },
  }
}

test('the id of a fork that is not made yet is for no other conversation, also after a restart', async () => {
  await using opened = await openHeld()
  const { bench, original } = opened
  const posted = await opened.post({ repeat: 6 })
  await opened.asking
  const { conversation_id: id } = posted.rows[5]!
  const taken = { code: 'conversation_exists' }
  const squat = async () => {
    await expect(bench.converse({ id })).rejects.toMatchObject(taken)
    await expect(bench.manager.fork(original.id, ForkConversation.parse({ id }))).rejects.toMatchObject(taken)
  }
  await squat()
  await opened.replays.cancel(posted.id, anyone)
  await opened.replays.close()
  await bench.restart()
  const replays = createReplays(bench)
  await replays.start()
  await squat()
  await replays.close()
})

test('the share of a fork that a client deletes counts as spent', async () => {
  await using opened = await openHeld()
  const posted = await opened.post({ repeat: 8, max_cost_usd: 1 })
  await untilReplay(opened.replays, posted, ({ rows }) => rows.filter(({ files }) => files).length === 4)
  await Promise.all(posted.rows.slice(0, 4).map(({ conversation_id: id }) => opened.bench.manager.delete(id)))
  const { cost_usd, rows } = await untilReplay(opened.replays, posted)
  expect(cost_usd).toBe(1)
  expect(rows.map(({ files }) => files !== undefined)).toEqual([true, true, true, true, false, false, false, false])
})

test('requests at the same time begin ten replays and no more', async () => {
  await using opened = await openHeld()
  const settled = await Promise.allSettled(Array.from({ length: 14 }, () => opened.post()))
  const refused = settled.filter(({ status }) => status === 'rejected')
  expect(refused).toEqual(
    Array.from({ length: 4 }, () =>
      expect.objectContaining({ reason: expect.objectContaining({ code: 'limit_reached' }) }),
    ),
  )
})

test('one user begins five replays, and others still can', async () => {
  await using opened = await openHeld()
  const { bench, replays } = opened
  const ofUser = async (user_id: string) => {
    const original = await bench.converse({ llm_config: pricedLlm(bench), user_id })
    await original.post({ message: 'go', run: false })
    return () => replays.post(asked({ conversation_ids: [original.id] }))
  }
  const [post, postAsOther] = [await ofUser('user-17'), await ofUser('user-18')]
  const settled = await Promise.allSettled(Array.from({ length: 7 }, post))
  expect(settled.filter(({ status }) => status === 'rejected')).toHaveLength(2)
  await expect(postAsOther()).resolves.toMatchObject({ status: 'running' })
})

test('a replay that a client has cancelled does not continue when the server ends meanwhile', async () => {
  await using opened = await openHeld()
  const { bench } = opened
  const posted = await opened.post({ repeat: 6 })
  await opened.asking
  const path = join(bench.dataDir, 'replays', `${posted.id}.json`)
  const { replay } = JSON.parse(fs.readFileSync(path, 'utf8'))
  await opened.replays.cancel(posted.id, anyone)
  await opened.replays.close()
  await bench.restart()
  // As a server that ends at once leaves it.
  fs.writeFileSync(path, JSON.stringify({ ...JSON.parse(fs.readFileSync(path, 'utf8')), replay }))
  const { length } = bench.model.requests
  const replays = createReplays(bench)
  await replays.start()
  expect(await untilReplay(replays, posted)).toMatchObject({ status: 'cancelled' })
  expect(bench.model.requests).toHaveLength(length)
  await replays.close()
})

test('a replay that is posted while the server stops begins at the next start', async () => {
  await using opened = await openHeld()
  const { bench, original } = opened
  opened.release()
  let closing: Promise<void> | undefined
  const stopping = createReplays(bench, { beforeWrite: () => void (closing ??= stopping.close()) })
  const posted = await stopping.post(asked({ conversation_ids: [original.id] }))
  await closing
  const replays = createReplays(bench)
  await replays.start()
  expect(await untilReplay(replays, posted)).toMatchObject({ status: 'completed' })
  expect(bench.model.requests).toHaveLength(1)
  await replays.close()
})

test('a replay that has ended keeps no keys of model endpoints, not even encrypted', async () => {
  await using opened = await openHeld()
  const posted = await opened.post({ llm_configs: [{ api_key: 'sk-of-the-replay-4711' }] })
  const path = join(opened.bench.dataDir, 'replays', `${posted.id}.json`)
  expect(JSON.parse(fs.readFileSync(path, 'utf8'))).toHaveProperty('plan')
  opened.release()
  const done = await untilReplay(opened.replays, posted)
  await opened.replays.close()
  expect(JSON.parse(fs.readFileSync(path, 'utf8'))).not.toHaveProperty('plan')
  const replays = createReplays(opened.bench)
  await replays.start()
  expect(await replays.get(posted.id, anyone)).toEqual(done)
  await replays.close()
})
