/** Snapshots and events that servers of different versions exchange in one data directory. */
import { readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ListConversations } from '../../../src/contract/conversation.ts'
import { versionOf } from '../../../src/contract/events/event.ts'
import { uuid7 } from '../../../src/lib/uuid7.ts'
import { eventsOf, say, setBench } from '../fixtures.ts'

const RULES = { allow: [], ask: [], deny: ['Bash(rm:*)'] }

test('events that older servers would misread have version 2: then those servers do not run the conversation', async () => {
  await using bench = await setBench()
  const conversation = await bench.converse({ title: 'without rules' })
  await conversation.post({ message: { role: 'user', content: 'hello' }, run: false })
  await conversation.setConfirmation(true)
  await conversation.configure({ permission_mode: 'plan' })
  await conversation.rules.replace(RULES)
  await conversation.setConfirmation(false)
  expect((await eventsOf(conversation)).map(({ version }) => version)).toEqual([1, 1, 1, 2, 2, 1])
  const created = await bench.converse({ permission_rules: RULES })
  expect((await eventsOf(created)).map(({ version }) => version)).toEqual([2])
  const question = { type: 'RequestOpened', source: 'environment', kind: 'question', request_id: uuid7() } as const
  expect(versionOf({ ...question, tool_use_ids: ['a'], payload: { questions: [] } })).toBe(3)
})

test('permission rules survive an older server, whose snapshot does not contain them', async () => {
  await using bench = await setBench()
  const [ruled, plain] = [await bench.create({ permission_rules: RULES }), await bench.create()]
  for (const id of [ruled, plain]) await say(await bench.manager.open(id))
  const metaOf = (id: string) => join(bench.sessionOf(id), 'meta.json')
  const read = async (id: string) => JSON.parse(await readFile(metaOf(id), 'utf8'))
  await bench.restart({
    between: async () => {
      expect(await read(plain), 'older servers can read it').toMatchObject({ format: 1, version: 1 })
      const { settings, ...meta } = await read(ruled)
      expect(meta).toMatchObject({ format: 2, version: 2 })
      const { permission_rules: _, ...olderSettings } = settings
      await writeFile(metaOf(ruled), JSON.stringify({ ...meta, format: 1, settings: olderSettings }))
    },
  })
  expect((await bench.manager.open(ruled)).rules.current).toEqual(RULES)
})

test('the snapshot of a version that counted repetitions in another way is read, and the count begins again', async () => {
  await using bench = await setBench()
  const id = await bench.create()
  await say(await bench.manager.open(id))
  const path = join(bench.sessionOf(id), 'meta.json')
  const repeats = { failures: ['0123456789abcdef'.repeat(2)], open: [], error: { hash: '0123456789abcdef', times: 1 } }
  await bench.restart({
    between: async () => {
      const meta = JSON.parse(await readFile(path, 'utf8'))
      await writeFile(path, JSON.stringify({ ...meta, repeats, preview: 'from the snapshot' }))
    },
  })
  expect((await bench.manager.open(id)).state).toMatchObject({ preview: 'from the snapshot', repeats: {} })
})

test('a log of one or two events has no snapshot: lists and starts read the log itself', async () => {
  await using bench = await setBench()
  const [created, posted] = [await bench.create({ title: 'created' }), await bench.create({ title: 'posted' })]
  await (await bench.manager.open(posted)).post({ message: { role: 'user', content: 'hello' }, run: false })
  const before = [await bench.view(posted), await bench.view(created)]
  await bench.restart()
  for (const id of [created, posted]) expect(await readdir(bench.sessionOf(id))).not.toContain('meta.json')
  expect((await bench.manager.list(ListConversations.parse({}))).items).toEqual(before)
  expect(await Promise.all([posted, created].map((id) => bench.view(id)))).toEqual(before)
})
