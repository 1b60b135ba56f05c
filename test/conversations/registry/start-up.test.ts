/** What a start of the server knows of its conversations, whatever was done to the files that make it quick: the logs are right. */
import { appendFile, copyFile, readFile, readdir, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { ListConversations } from '../../../src/contract/conversation.ts'
import type { ConversationView } from '../../../src/contract/conversation.ts'
import { effort } from '../../support/patience.ts'
import { createRandom } from '../../support/random.ts'
import type { Bench } from '../fixtures.ts'
import { call, say, setBench, userText } from '../fixtures.ts'
import { recordOpenedLogs } from '../opened-logs.ts'

const summariesOf = (bench: Bench) => join(bench.dataDir, 'summaries.db')
const logOf = (bench: Bench, id: string) => join(bench.sessionOf(id), 'events.jsonl')

const post = async (bench: Bench, id: string, text: string) =>
  await (await bench.manager.open(id)).post({ message: { role: 'user', content: text }, run: false })

const listed = async (bench: Bench, query: object = {}): Promise<ConversationView[]> =>
  (await bench.manager.list(ListConversations.parse({ limit: 1000, ...query }))).items

const seqsOf = async (bench: Bench) => Object.fromEntries((await listed(bench)).map((one) => [one.id, one.last_seq]))

/** Opens each conversation, which goes by its log alone as far as that tells another story. */
async function truthOf(bench: Bench): Promise<ConversationView[]> {
  const ids = (await listed(bench)).map(({ id }) => id)
  return await Promise.all(ids.map((id) => bench.view(id)))
}

describe('a start of the server', () => {
  test('opens no log of an unchanged conversation, and reads no meta.json of it', async () => {
    const { opened, logs } = recordOpenedLogs()
    await using bench = await setBench({ logs })
    const id = await bench.create({ title: 'One' })
    await bench.restart({ between: () => writeFile(join(bench.sessionOf(id), 'meta.json'), 'no state at all') })
    expect(bench.manager.count({ q: 'one' }).count).toBe(1)
    expect(opened).toEqual([])
    expect(await listed(bench), 'and opens it when a list needs it').toMatchObject([{ id, title: 'One', last_seq: 1 }])
  })

  test('opens no log of a conversation that waits, also after a kill, before a deadline has passed', async () => {
    const { opened, logs } = recordOpenedLogs()
    const deps = { clientTools: { restAfterMs: 1 } }
    const script = () => ({ calls: [call('look_up')] })
    await using bench = await setBench({
      logs,
      deps,
      script,
      manager: { idle: { afterMs: 20, isShort: () => false } },
    })
    const lookUp = { name: 'look_up', description: '', input_schema: { type: 'object' } }
    const wait = async (timeout?: number) => {
      const id = await bench.create({ client_tools: [{ ...lookUp, ...(timeout !== undefined && { timeout }) }] })
      // As a request does it: otherwise it may be closed as idle meanwhile.
      const release = bench.manager.hold(id)
      await (await bench.manager.open(id)).post(userText('go', true))
      await expect.poll(async () => (await bench.view(id)).status).toBe('waiting_for_client')
      release()
      return id
    }
    for (let n = 0; n < effort(100, 10_000); n++) await bench.create()
    const waiting = await Promise.all([wait(), wait(3600), wait(30), wait(31), wait(32)])
    const [, , ...due] = waiting
    await expect.poll(() => bench.manager.openCount).toBe(0)
    const ids = async () => (await bench.manager.requests({ limit: 50 })).items.map((each) => each.conversation_id)
    for (const kill of [false, true]) {
      await bench.restart({ kill, between: async () => void (opened.length = 0) })
      expect((await ids()).toSorted()).toEqual(waiting.toSorted())
      expect(opened).toEqual([])
    }
    const later = Date.now() + 60_000
    vi.spyOn(Date, 'now').mockImplementation(() => later)
    onTestFinished(() => void vi.restoreAllMocks())
    await bench.restart({ kill: true })
    const closed = (id: string) =>
      readFile(logOf(bench, id), 'utf8').then((text) => text.includes('"reason":"timeout"'))
    await expect.poll(() => Promise.all(due.map(closed))).toEqual([true, true, true])
    expect(opened.toSorted()).toEqual(due.toSorted())
  })

  test('takes the log that is there: restored from an older copy, in the place of another, or written on', async () => {
    await using bench = await setBench()
    const [restored, first, second, grown] = [
      await bench.create({ title: 'restored' }),
      await bench.create({ title: 'first' }),
      await bench.create({ title: 'second' }),
      await bench.create({ title: 'grown' }),
    ]
    const copy = join(bench.dataDir, 'copy')
    await post(bench, restored, 'one')
    await copyFile(logOf(bench, restored), copy)
    await bench.configure(restored, { title: 'later' })
    await post(bench, grown, 'one')
    await bench.restart({
      async between() {
        await copyFile(copy, logOf(bench, restored))
        // As long as each other; their events say whose they are.
        const texts = await Promise.all([first, second].map((id) => readFile(logOf(bench, id), 'utf8')))
        await writeFile(logOf(bench, first), texts[1]!.replaceAll(second, first))
        await writeFile(logOf(bench, second), texts[0]!.replaceAll(first, second))
        const line = (await readFile(logOf(bench, grown), 'utf8')).split('\n')[1]!
        await appendFile(logOf(bench, grown), `${line.replace('"seq":2', '"seq":3').replace('"one"', '"two"')}\n`)
      },
    })
    expect(await seqsOf(bench)).toMatchObject({ [restored]: 2, [grown]: 3 })
    expect((await listed(bench, { q: 'restored' })).map(({ id }) => id)).toEqual([restored])
    expect((await listed(bench, { q: 'first' })).map(({ id }) => id)).toEqual([second])
    expect(await listed(bench)).toEqual(await truthOf(bench))
  })

  test('knows events that are not in any list yet, also after a kill', async () => {
    for (const kill of [true, false]) {
      await using bench = await setBench()
      const id = await bench.create()
      const conversation = await bench.manager.open(id)
      await conversation.clientEvents.post({ name: 'noticed', data: {} })
      await bench.restart({ kill })
      expect(await seqsOf(bench), `kill: ${kill}`).toEqual({ [id]: 2 })
      expect(await listed(bench)).toEqual(await truthOf(bench))
    }
  })

  test.each(['its summary', 'its meta.json'])(
    'never sweeps a conversation whose log is gone or empty: %s shows that it is damaged',
    async (evidence) => {
      await using bench = await setBench()
      const [gone, empty] = [await bench.create({ title: 'gone' }), await bench.create({ title: 'empty' })]
      if (evidence === 'its meta.json') for (const id of [gone, empty]) await say(await bench.manager.open(id))
      await bench.restart({
        async between() {
          await rm(logOf(bench, gone))
          await truncate(logOf(bench, empty), 0)
          if (evidence === 'its meta.json') await rm(summariesOf(bench))
        },
      })
      const status = { status: 'error' }
      const all = await listed(bench)
      expect(all).toMatchObject([
        { id: empty, title: 'empty', ...status },
        { id: gone, title: 'gone', ...status },
      ])
      expect(await readdir(bench.sessionOf(gone))).toContain('secrets.enc')
      await bench.restart()
      expect(await listed(bench), 'also after another start').toEqual(all)
    },
  )

  test('leaves nothing of a deleted conversation in the file of summaries', async () => {
    await using bench = await setBench()
    const [kept, deleted] = [await bench.create({ title: 'stays' }), await bench.create({ title: 'goes' })]
    const key = { key: 'its-key', bodyHash: 'h' }
    const request = { title: 'goes too', llm_config: { model: 'm' }, max_iteration_per_run: 1 }
    const keyed = await bench.manager.create(request, key)
    await bench.restart()
    const before = await readFile(summariesOf(bench), 'utf8')
    for (const text of ['stays', 'goes too', 'its-key', deleted]) expect(before).toContain(text)
    await bench.manager.delete(deleted)
    await bench.manager.delete(keyed.id)
    const after = await readFile(summariesOf(bench), 'utf8')
    for (const text of ['goes', 'its-key', deleted, keyed.id]) expect(after).not.toContain(text)
    expect(after).toContain(kept)
    await bench.restart()
    expect(
      (await bench.manager.create(request, key).catch((error: { code: string }) => error)) as object,
    ).toMatchObject({
      code: 'conversation_deleted',
    })
  })

  test('is correct whatever was done to the file of summaries, to meta.json and to the logs', async () => {
    for (let seed = 1; seed <= effort(2, 40); seed++) {
      const random = createRandom(seed)
      await using bench = await setBench()
      const ids: string[] = []
      const copies = new Map<string, string>()
      let copied = 0
      const keep = async (path: string) => {
        const copy = join(bench.dataDir, `copy-${(copied += 1)}`)
        await copyFile(path, copy).then(
          () => copies.set(path, copy),
          () => {},
        )
      }
      const use = async () => {
        const id = ids.length > 0 ? random.pick(ids) : undefined
        switch (id === undefined ? 0 : random.below(6)) {
          case 0:
            ids.push(await bench.create({ title: `Number ${ids.length}` }))
            break
          case 1:
            await post(bench, id!, 'a message')
            break
          case 2:
            await bench.configure(id!, { title: `Another ${random.below(100)}` })
            break
          case 3:
            await (await bench.manager.open(id!)).clientEvents.post({ name: 'noticed', data: {} })
            break
          case 4:
            await keep(logOf(bench, id!))
            break
          default:
            await keep(random.pick([summariesOf(bench), join(bench.sessionOf(id!), 'meta.json')]))
        }
      }
      const tamper = async () => {
        const path = random.pick([
          summariesOf(bench),
          summariesOf(bench),
          join(bench.sessionOf(random.pick(ids)), 'meta.json'),
        ])
        const bytes = await readFile(path).catch(() => Buffer.alloc(0))
        switch (random.below(6)) {
          case 0:
            return await rm(path, { force: true })
          case 1:
            return await writeFile(path, bytes.subarray(0, random.below(bytes.length + 1)))
          case 2:
            return await writeFile(path, Buffer.concat([bytes, Buffer.alloc(random.below(20)), Buffer.from('["a",1')]))
          case 3: {
            // A page that never reached the disk.
            const from = random.below(bytes.length + 1)
            return await writeFile(path, bytes.fill(0, from, Math.min(bytes.length, from + random.below(500))))
          }
          default: {
            const [original, copy] = random.pick([...copies, ['', '']])
            if (original) await copyFile(copy, original)
          }
        }
      }
      for (let round = 0; round < 4; round++) {
        for (let step = 3 + random.below(6); step > 0; step--) await use()
        // A copy comes into its place by rename, or is written over what is there.
        const kill = random.below(2) === 0
        await bench.restart({
          kill,
          between: async () => {
            for (let step = random.below(3); step > 0; step--) await tamper()
          },
        })
        const what = `seed ${seed} round ${round}`
        const now = await listed(bench)
        expect(now.map(({ id }) => id).toSorted(), what).toEqual(ids.toSorted())
        const titles = now.map(({ title }) => title)
        const counts = titles.map((title) => bench.manager.count({ q: title }).count)
        const truth = await truthOf(bench)
        expect(now, what).toEqual(truth)
        expect(
          titles.map((title) => bench.manager.count({ q: title }).count),
          what,
        ).toEqual(counts)
      }
    }
  })
})
