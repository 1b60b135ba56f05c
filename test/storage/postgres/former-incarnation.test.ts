/** What the note of a data directory proves about the process that wrote it. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { replaceNote } from '../../../src/storage/postgres/former-incarnation.ts'
import { tempDirectory } from '../../events/fixtures.ts'

const LOCK = { identity: '66306:1234' }
const first = { id: 1, startedAt: '2026-01-31 12:00:00.123456+00' }
const second = { id: 2, startedAt: '2026-01-31 12:00:01.123456+00' }

test.skipIf(process.platform !== 'linux')(
  'the next start with the same lock gets the incarnation of the note',
  async () => {
    await using place = await tempDirectory()
    expect(await replaceNote(place.path, LOCK, first)).toBeUndefined()
    expect(await replaceNote(place.path, LOCK, second)).toMatchObject(first)
    expect(await replaceNote(place.path, LOCK, first)).toMatchObject(second)
  },
)

test('a note of another lock, of another boot of the machine, or that is damaged, proves nothing', async () => {
  await using place = await tempDirectory()
  const path = join(place.path, 'incarnation')
  await replaceNote(place.path, LOCK, first)
  expect(await replaceNote(place.path, { identity: '66306:5678' }, second)).toBeUndefined()
  const note = await readFile(path, 'utf8')
  await writeFile(path, note.replace(/"lock":"[\da-f-]*/, '"lock":"another-boot'))
  expect(await replaceNote(place.path, { identity: '66306:5678' }, second)).toBeUndefined()
  await replaceNote(place.path, { identity: undefined }, first)
  expect(await replaceNote(place.path, { identity: undefined }, second)).toBeUndefined()
  for (const damaged of ['', '{"id":']) {
    await writeFile(path, damaged)
    expect(await replaceNote(place.path, LOCK, second)).toBeUndefined()
  }
})
