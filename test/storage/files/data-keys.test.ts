import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openDataKeys } from '../../../src/storage/files/data-keys.ts'

let dir: string
beforeEach(async () => void (dir = await mkdtemp(join(tmpdir(), 'data-keys-'))))
afterEach(() => rm(dir, { recursive: true }))

const text = () => readFile(join(dir, 'data-keys'), 'utf8')

test('a key is made once, and is not to be read from the file', async () => {
  const { material, locked } = await openDataKeys(dir, ['operator'])
  expect(material).toEqual([expect.stringMatching(/^[\w+/]{43}=$/), 'operator'])
  expect(locked).toBe(0)
  const before = await text()
  expect(before).not.toContain(material[0])
  expect((await stat(join(dir, 'data-keys'))).mode & 0o777).toBe(0o600)
  expect((await openDataKeys(dir, ['operator'])).material).toEqual(material)
  expect(await text()).toBe(before)
})

test('it is the same under a new key of the operator, after it was opened once together with the old one', async () => {
  const [key] = (await openDataKeys(dir, ['old'])).material
  expect((await openDataKeys(dir, ['new', 'old'])).material).toEqual([key, 'new', 'old'])
  expect(await openDataKeys(dir, ['new'])).toEqual({ material: [key, 'new'], locked: 0 })
})

test('unreadable keys are kept and reported; new data gets a new key', async () => {
  const [lost] = (await openDataKeys(dir, ['old'])).material
  const { material, locked } = await openDataKeys(dir, ['new'])
  expect(material[0]).not.toBe(lost)
  expect(locked).toBe(1)
  const both = await openDataKeys(dir, ['old', 'new'])
  expect(both).toEqual({ material: [material[0], lost, 'old', 'new'], locked: 0 })
  expect((await openDataKeys(dir, ['old'])).material).toEqual([material[0], lost, 'old'])
})
