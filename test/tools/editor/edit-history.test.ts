import { mkdir, readFile, readdir, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createSealers } from '../../../src/security/sealer.ts'
import { createEditHistory } from '../../../src/tools/editor/edit-history.ts'
import { makeDirectory } from '../../files/editor-fixture.ts'

const text = (content: string) => Buffer.from(content)

const sealer = createSealers(['the key of the tests'])('a')

async function setUp(bounds: { maxEntries?: number; maxBytes?: number } = {}) {
  const directory = join(await makeDirectory(), 'edits')
  const open = () => createEditHistory({ directory, sealer, ...bounds })
  return { directory, open, history: open() }
}

test('the newest edit of a file is the last, also after reopening the history', async () => {
  const { history, open } = await setUp()
  await history.note('/a', text('1'), text('2'))
  await history.note('/a', text('2'), text('3'))
  await history.note('/b', undefined, text('b'))
  for (const each of [history, open()]) {
    expect((await each.last('/a'))?.before).toEqual(text('2'))
    expect((await each.last('/b'))?.before).toBeUndefined()
    expect(await each.last('/c')).toBeUndefined()
  }
})

test('an edit knows what it left, and what it came from', async () => {
  const { history } = await setUp()
  await history.note('/a', text('1'), text('2'))
  const last = (await history.last('/a'))!
  expect([text('2'), text('1'), undefined].map(last.isResult)).toEqual([true, false, false])
  expect([text('2'), text('1'), undefined].map(last.isMoot)).toEqual([false, true, false])
})

test('an empty file and no file are not the same', async () => {
  const { history } = await setUp()
  await history.note('/a', undefined, text(''))
  const last = (await history.last('/a'))!
  expect(last.before).toBeUndefined()
  expect([text(''), undefined].map(last.isResult)).toEqual([true, false])
})

test('forgotten edits uncover the ones before', async () => {
  const { history, directory } = await setUp()
  await history.note('/a', text('1'), text('2'))
  await history.note('/a', text('2'), text('3'))
  await (await history.last('/a'))!.forget()
  expect((await history.last('/a'))?.before).toEqual(text('1'))
  await (await history.last('/a'))!.forget()
  expect(await history.last('/a')).toBeUndefined()
  expect(await readdir(directory)).toEqual([])
})

test('the oldest are removed when there are too many', async () => {
  const { history, directory } = await setUp({ maxEntries: 3 })
  for (let i = 0; i < 12; i++) await history.note(i % 2 ? '/a' : '/b', text(`${i}`), text(`${i + 1}`))
  expect(await readdir(directory)).toHaveLength(3)
  const levels: string[] = []
  for (let last = await history.last('/a'); last; last = await history.last('/a')) {
    levels.push(String(last.before))
    await last.forget()
  }
  expect(levels).toEqual(['11', '9'])
})

test('the oldest are removed when they take too much, but never the newest', async () => {
  const { history, directory } = await setUp({ maxBytes: 100 })
  for (let i = 0; i < 5; i++) await history.note('/a', Buffer.alloc(40), text(`${i}`))
  expect(await readdir(directory)).toHaveLength(2)
  await history.note('/a', Buffer.alloc(1000), text('x'))
  expect(await readdir(directory)).toHaveLength(1)
  expect((await history.last('/a'))?.before).toHaveLength(1000)
})

test('an entry torn by a crash or a power failure is skipped', async () => {
  const { history, directory } = await setUp()
  await history.note('/a', text('first'), text('second'))
  await history.note('/a', text('second'), text('third'))
  const [newest] = (await readdir(directory)).sort().toReversed()
  await truncate(join(directory, newest!), 100)
  await writeFile(join(directory, 'entry.new'), 'half')
  await mkdir(join(directory, 'not ours'))
  expect((await history.last('/a'))?.before).toEqual(text('first'))
  await history.note('/a', text('third'), text('fourth'))
  expect((await history.last('/a'))?.before).toEqual(text('third'))
})

test('nothing of a file can be read in it, and another key makes it as if there were none', async () => {
  const { history, directory } = await setUp()
  await history.note('/a-path', text('password = hunter2'), text(''))
  const [name] = await readdir(directory)
  expect(await readFile(join(directory, name!), 'latin1')).not.toMatch(/hunter2|a-path/)
  const other = createSealers(['another'])('a')
  expect(await createEditHistory({ directory, sealer: other }).last('/a-path')).toBeUndefined()
})
