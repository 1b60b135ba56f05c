/** Which values of readable files in a home are hidden, and for how long. */
import { mkdtemp, realpath, rm, symlink, unlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { HomeSecrets } from '../../src/access/home-secrets.ts'

let home: string
let hidden: Map<string, readonly string[]>
beforeEach(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), 'home-secrets-')))
  hidden = new Map()
})
afterEach(() => rm(home, { recursive: true, force: true }))

const hide = (name: string, ...values: readonly string[]) => void hidden.set(name, values)
const write = (name: string, token: string) => writeFile(join(home, name), `token=${token}\n`)
const shown = async (name: string) => ({ at: join(home, name), real: await realpath(join(home, name)) })

test('values of files whose names look the same in a placeholder are all hidden', async () => {
  await write('a b', 'first-token')
  await write('a_b', 'other-token')
  new HomeSecrets(home).refresh([await shown('a b'), await shown('a_b')], hide)
  expect(hidden.get('~/a_b')?.toSorted()).toEqual(['first-token', 'other-token'])
})

test('former values stay hidden when the file changes, and when a link leads to another file', async () => {
  const secrets = new HomeSecrets(home)
  await write('old', 'first-token')
  await write('new', 'other-token')
  await symlink('old', join(home, 'link'))
  secrets.refresh([await shown('link')], hide)
  await write('old', 'second-token')
  secrets.refresh([await shown('link')], hide)
  await unlink(join(home, 'link'))
  await symlink('new', join(home, 'link'))
  secrets.refresh([await shown('link')], hide)
  expect(hidden.get('~/link')?.toSorted()).toEqual(['first-token', 'other-token', 'second-token'])
})
