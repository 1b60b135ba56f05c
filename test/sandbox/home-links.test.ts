/** The links in the home of a conversation, among what its shells have put there. */
import { lstat, mkdir, mkdtemp, readdir, readFile, readlink, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openDirectory } from '../../src/files/jail/opened-path.ts'
import type { HomeLinks } from '../../src/sandbox/home-links.ts'
import { linkHome } from '../../src/sandbox/home-links.ts'

let root: string
let home: string
beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'home-links-')))
  home = join(root, 'home')
  await mkdir(home)
})
afterEach(() => rm(root, { recursive: true, force: true }))

async function link(wanted: HomeLinks): Promise<void> {
  await using place = await openDirectory(home)
  await linkHome(place, wanted, join(root, 'home.links'))
}

const WANTED = { '.npmrc': '/home/ada/.npmrc', '.config/gh': '/home/ada/.config/gh' }

test('are made with their directories, and removed when nobody wants them any more', async () => {
  await link(WANTED)
  expect(await readlink(join(home, '.config/gh'))).toBe('/home/ada/.config/gh')
  await link({ '.npmrc': '/home/ada/.npmrc' })
  expect([await readlink(join(home, '.npmrc')), await readdir(join(home, '.config'))]).toEqual(['/home/ada/.npmrc', []])
  await link({})
  expect(await readdir(home)).toEqual(['.config'])
})

test('leave what a conversation has there', async () => {
  await writeFile(join(home, '.npmrc'), 'mine\n')
  await symlink('/elsewhere', join(home, '.netrc'))
  await link({ ...WANTED, '.netrc': '/home/ada/.netrc' })
  await link({})
  expect(await readFile(join(home, '.npmrc'), 'utf8')).toBe('mine\n')
  expect(await readlink(join(home, '.netrc'))).toBe('/elsewhere')
})

test('are not made or removed through a link that a shell has put in the place of a directory', async () => {
  const outside = join(root, 'outside')
  await mkdir(outside)
  await symlink(outside, join(home, '.config'))
  await link(WANTED)
  expect(await readdir(outside)).toEqual([])
  await symlink(WANTED['.config/gh'], join(outside, 'gh'))
  await link({})
  expect((await lstat(join(outside, 'gh'))).isSymbolicLink()).toBe(true)
})

test('leave no record where there are none', async () => {
  await link({})
  expect(await readdir(root)).toEqual(['home'])
})
