/** What a start removes of what a killed server has left, and what it leaves to people. */
import { mkdir, readdir, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { removeDraftsIn, removeLeftFiles } from '../../../src/storage/files/left-files.ts'
import { tempDirectory } from '../../events/fixtures.ts'

const HEX = '0123456789ab'
const UUID = '01234567-89ab-7cde-8f01-23456789abcd'

async function leftOf(names: readonly string[], { ageMs }: { readonly ageMs: number }): Promise<string[]> {
  await using directory = await tempDirectory()
  const then = new Date(Date.now() - ageMs)
  for (const name of names) {
    await writeFile(join(directory.path, name), '')
    await utimes(join(directory.path, name), then, then)
  }
  await removeLeftFiles(directory.path)
  return (await readdir(directory.path)).sort()
}

const FIXED = ['version', 'tables.db', 'keys.json', 'local.json', 'firehose-heads', 'database', 'summaries'].flatMap(
  (name) => [`${name}.new`, `${name}.draft`],
)
const RANDOM = [
  ...['data-keys', 'hidden-files', 'master-key'].flatMap((name) => [
    `${name}.${HEX}`,
    `${name}.${UUID}`,
    `${name}.${HEX}.new`,
    `${name}.${UUID}.new`,
  ]),
  `.seccomp-${UUID}`,
]
const KEPT = [
  'version',
  'tables.db',
  'data-keys',
  'master-key',
  'master-key.new',
  'master-key.backup',
  `master-key.${HEX}0`,
  `master-key.${'z'.repeat(36)}`,
  `master-key.${UUID.toUpperCase()}`,
  `master-key.${UUID}.old`,
  `my-master-key.${HEX}`,
  `other.${HEX}`,
  `.seccomp-${HEX}`,
  `.seccomp-${UUID}.txt`,
  'x.version.new',
  'versions.new',
  'version.newer',
  'x.ready',
].sort()

test('a start removes the drafts of the server by their names, and keeps all other files', async () => {
  expect(await leftOf([...FIXED, 'summaries', '.ready', ...RANDOM, ...KEPT], { ageMs: 61_000 })).toEqual(KEPT)
})

test('what another program may be making just now is left', async () => {
  expect(await leftOf([...FIXED, ...RANDOM], { ageMs: 0 })).toEqual([...RANDOM].sort())
})

test('a directory that is not there has nothing to remove', async () => {
  await using directory = await tempDirectory()
  await expect(removeLeftFiles(join(directory.path, 'none'))).resolves.toBeUndefined()
  await writeFile(join(directory.path, 'file'), '')
  await expect(removeLeftFiles(join(directory.path, 'file'))).resolves.toBeUndefined()
})

test('drafts in the directory of a conversation are removed there and in the directories that are named', async () => {
  await using directory = await tempDirectory()
  for (const inner of ['', 'named', 'other']) {
    await mkdir(join(directory.path, inner), { recursive: true })
    for (const name of ['a', 'a.new', 'a.draft', `a.${HEX}`]) await writeFile(join(directory.path, inner, name), '')
  }
  await removeDraftsIn(directory.path, ['named'])
  expect((await readdir(directory.path, { recursive: true })).sort()).toEqual(
    ['a', 'named', 'named/a', 'other', ...['a', 'a.new', 'a.draft', `a.${HEX}`].map((name) => `other/${name}`)].sort(),
  )
})
