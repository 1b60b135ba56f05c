/** The directory that all instances of a database share belongs to that database. */
import { mkdir, readFile, readdir, realpath, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { DatabaseError } from '../../../src/storage/postgres/database-errors.ts'
import { openSharedDirectory } from '../../../src/storage/postgres/shared-directory.ts'
import { tempDirectory } from '../../events/fixtures.ts'

test('the first instance marks the directory, and others of its database find the mark', async () => {
  await using place = await tempDirectory()
  const path = join(place.path, 'a', 'shared')
  const sessions = join(await realpath(place.path), 'a', 'shared', 'sessions')
  for (const _ of ['first', 'second']) expect(await openSharedDirectory(path, 'one')).toBe(sessions)
  expect(await readFile(join(path, 'cluster'), 'utf8')).toBe('one\n')
  expect((await readdir(path)).toSorted()).toEqual(['cluster', 'sessions'])
  for (const each of [path, sessions]) expect((await stat(each)).mode & 0o777).toBe(0o700)
})

test('an instance of another database is refused, and changes nothing', async () => {
  await using place = await tempDirectory()
  await openSharedDirectory(place.path, 'one')
  const opening = openSharedDirectory(place.path, 'two')
  await expect(opening).rejects.toThrow(DatabaseError)
  await expect(opening).rejects.toThrow(/belongs to the instances of another database/)
  expect(await readFile(join(place.path, 'cluster'), 'utf8')).toBe('one\n')
})

test('of instances that start at the same time, those of one database only get the directory', async () => {
  await using place = await tempDirectory()
  const identities = ['one', 'two', 'one', 'two', 'one', 'two']
  const openings = await Promise.allSettled(identities.map((each) => openSharedDirectory(place.path, each)))
  const winner = (await readFile(join(place.path, 'cluster'), 'utf8')).trim()
  const got = identities.filter((_, at) => openings[at]?.status === 'fulfilled')
  expect(got).toEqual([winner, winner, winner])
  expect((await readdir(place.path)).toSorted()).toEqual(['cluster', 'sessions'])
})

test('instances that come through a link use the same path', async () => {
  await using place = await tempDirectory()
  await mkdir(join(place.path, 'real'))
  await symlink('real', join(place.path, 'link'))
  expect(await openSharedDirectory(join(place.path, 'link'), 'one')).toBe(
    await openSharedDirectory(join(place.path, 'real'), 'one'),
  )
})

test('a mark that cannot be read is not that of this database', async () => {
  await using place = await tempDirectory()
  await mkdir(join(place.path, 'cluster'))
  await expect(openSharedDirectory(place.path, 'one')).rejects.toThrow(/OPENHANDS_SHARED_DIR cannot be used: EISDIR/)
  await rm(join(place.path, 'cluster'), { recursive: true })
  await writeFile(join(place.path, 'file'), '')
  await expect(openSharedDirectory(join(place.path, 'file'), 'one')).rejects.toThrow(DatabaseError)
})
