import { copyFile, mkdir, readFile, readdir, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SecretFiles } from '../../../src/storage/files/secret-files.ts'
import { uuid7 } from '../../../src/lib/uuid7.ts'
import { tempDirectory } from '../../events/fixtures.ts'
import { effort } from '../../support/patience.ts'

const KEY = 'the first key of the tests'
const VALUES = { llm: { api_key: 'sk-very-secret-0123456789' } }

async function setUp() {
  const directory = await tempDirectory()
  const id = uuid7()
  await mkdir(join(directory.path, id))
  const withKeys = (...keyMaterial: [string, ...string[]]): SecretFiles => new SecretFiles(directory.path, keyMaterial)
  const file = (of = id) => join(directory.path, of, 'secrets.enc')
  return { id, withKeys, file, directory: directory.path, [Symbol.asyncDispose]: directory[Symbol.asyncDispose] }
}

test('what is written is read again, by another store with the same key', async () => {
  await using place = await setUp()
  const name = fc.stringMatching(/^[A-Za-z]\w{0,15}$/)
  const value = fc.string({ unit: 'grapheme' })
  await fc.assert(
    fc.asyncProperty(fc.dictionary(name, fc.dictionary(name, value)), async (values) => {
      await place.withKeys(KEY).write(place.id, values)
      expect(await place.withKeys(KEY).read(place.id)).toEqual(values)
    }),
    { numRuns: effort(8, 200) },
  )
})

test('a conversation without secrets has none', async () => {
  await using place = await setUp()
  expect(await place.withKeys(KEY).read(uuid7())).toEqual({})
})

test('the file contains no plain text, and only its owner may read it', async () => {
  await using place = await setUp()
  await place.withKeys(KEY).write(place.id, VALUES)
  const content = await readFile(place.file(), 'latin1')
  for (const word of [
    'api_key',
    'llm',
    VALUES.llm.api_key,
    Buffer.from(VALUES.llm.api_key).toString('base64').slice(0, 16),
  ])
    expect(content).not.toContain(word)
  expect((await stat(place.file())).mode & 0o777).toBe(0o600)
  expect(await readdir(join(place.directory, place.id)), 'no half-written file is left').toEqual(['secrets.enc'])
})

test('the same values never look the same', async () => {
  await using place = await setUp()
  const contents = new Set<string>()
  for (let round = 0; round < 5; round++) {
    await place.withKeys(KEY).write(place.id, VALUES)
    contents.add(await readFile(place.file(), 'hex'))
  }
  expect(contents.size).toBe(5)
})

describe('keys', () => {
  test('with another key it says what to do, and tells no value', async () => {
    await using place = await setUp()
    await place.withKeys(KEY).write(place.id, VALUES)
    await expect(place.withKeys('another key').read(place.id)).rejects.toMatchObject({
      code: 'storage_failed',
      message: expect.stringMatching(/another key.*OPENHANDS_SECRET_KEY.*old master key/),
    })
  })

  test('with another key the next write sets the file aside, because its own key may be found again', async () => {
    await using place = await setUp()
    await place.withKeys(KEY).write(place.id, VALUES)
    const sealed = await readFile(place.file())
    const other = place.withKeys('another key')
    await expect(other.read(place.id)).rejects.toThrow()
    await other.write(place.id, { env: { A: 'what was sent again' } })
    expect(await other.read(place.id)).toEqual({ env: { A: 'what was sent again' } })
    const [aside] = (await readdir(dirname(place.file()))).filter((name) => name.includes('unreadable'))
    expect(await readFile(join(dirname(place.file()), aside!))).toEqual(sealed)
  })

  test('while keys change, each of them opens it and the first closes it', async () => {
    await using place = await setUp()
    await place.withKeys('old key').write(place.id, VALUES)
    const both = place.withKeys('new key', 'old key')
    expect(await both.read(place.id)).toEqual(VALUES)
    await both.write(place.id, VALUES)
    expect(await place.withKeys('new key').read(place.id)).toEqual(VALUES)
    await expect(place.withKeys('old key').read(place.id)).rejects.toMatchObject({ code: 'storage_failed' })
  })
})

describe('a file that is not what was written is refused:', () => {
  test('any byte changed', async () => {
    await using place = await setUp()
    await place.withKeys(KEY).write(place.id, VALUES)
    const sealed = await readFile(place.file())
    for (let at = 0; at < sealed.length; at++) {
      const changed = Buffer.from(sealed)
      changed[at]! ^= 1
      await writeFile(place.file(), changed)
      await expect(place.withKeys(KEY).read(place.id), `byte ${at}`).rejects.toMatchObject({ code: 'storage_failed' })
    }
  })

  test('cut off at any place', async () => {
    await using place = await setUp()
    await place.withKeys(KEY).write(place.id, VALUES)
    const sealed = await readFile(place.file())
    for (let end = 0; end < sealed.length; end++) {
      await writeFile(place.file(), sealed.subarray(0, end))
      await expect(place.withKeys(KEY).read(place.id), `${end} bytes`).rejects.toMatchObject({ code: 'storage_failed' })
    }
  })

  test('taken from another conversation', async () => {
    await using place = await setUp()
    const other = uuid7()
    await mkdir(join(place.directory, other))
    await place.withKeys(KEY).write(place.id, VALUES)
    await copyFile(place.file(), place.file(other))
    await expect(place.withKeys(KEY).read(other)).rejects.toMatchObject({ code: 'storage_failed' })
  })
})

test('a write that fails leaves what was there before', async () => {
  await using place = await setUp()
  const store = place.withKeys(KEY)
  await store.write(place.id, VALUES)
  const gone = uuid7()
  await expect(store.write(gone, VALUES)).rejects.toThrow('ENOENT')
  expect(await store.read(place.id)).toEqual(VALUES)
})
