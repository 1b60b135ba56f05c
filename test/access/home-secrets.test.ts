/** Which values of readable files in a home are hidden, and for how long. */
import { mkdir, mkdtemp, realpath, rm, symlink, unlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { HomeSecrets, whyNotSearchable } from '../../src/access/home-secrets.ts'

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

test('a file that is too large to be searched, or has too many values, is named with the reason', async () => {
  await mkdir(join(home, '.kube'))
  await writeFile(join(home, '.kube/config'), 'x'.repeat(1024 ** 2 + 1))
  await writeFile(join(home, 'many'), Array.from({ length: 1025 }, (_, at) => `token=value-${at}`).join('\n'))
  const reason = async (name: string) => whyNotSearchable(home, await shown(name))
  expect(await reason('.kube')).toBe('~/.kube/config cannot be searched for secrets: it is larger than 1 MiB')
  expect(await reason('many')).toBe('~/many has more than 1024 values that may be secret')
  await write('few', 'first-token')
  expect(await reason('few')).toBeUndefined()
})

test('all of 1000 values in a file are hidden', async () => {
  await writeFile(join(home, 'many'), Array.from({ length: 1000 }, (_, at) => `token=value-${at}`).join('\n'))
  new HomeSecrets(home).refresh([await shown('many')], hide)
  expect(hidden.get('~/many')).toHaveLength(1000)
})
