/** What a person has agreed to keep, in the settings file. */
import { chmod, chown, lstat, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { keepSettings } from '../../../src/cli/settings/keep-settings.ts'

const VALUES = { model: 'gpt-5', base_url: 'https://api.example.com/v1', api_key: 'sk-secret' }
/** Of the first user that is not root. */
const OTHER_USER = 1

let home: string
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'keep-settings-'))
})
afterAll(() => rm(home, { recursive: true, force: true }))

const modeOf = async (path: string) => ((await stat(path)).mode & 0o777).toString(8)

test('a new file and its directory are for their user only', async () => {
  const path = join(home, 'new', 'settings.json')
  expect(await keepSettings(path, VALUES)).toBeUndefined()
  expect(JSON.parse(await readFile(path, 'utf8'))).toEqual(VALUES)
  expect([await modeOf(path), await modeOf(join(home, 'new'))]).toEqual(['600', '700'])
  expect(await readdir(join(home, 'new'))).toEqual(['settings.json'])
})

test('a link to a file of the person stays a link', async () => {
  const [path, target] = [join(home, 'link.json'), join(home, 'target.json')]
  await writeFile(target, '{"timeout": 30}', { mode: 0o600 })
  await symlink(target, path)
  await keepSettings(path, VALUES)
  expect((await lstat(path)).isSymbolicLink()).toBe(true)
  expect(JSON.parse(await readFile(target, 'utf8'))).toEqual({ timeout: 30, ...VALUES })
})

test('a link to nothing, a directory that all can write to, and text that is not JSON are refused, and stay as they are', async () => {
  const link = join(home, 'nowhere.json')
  await symlink(join(home, 'missing', 'file.json'), link)
  await expect(keepSettings(link, VALUES)).rejects.toThrow('is a link to a file that does not exist')
  await mkdir(join(home, 'open'))
  await chmod(join(home, 'open'), 0o777)
  await expect(keepSettings(join(home, 'open', 'settings.json'), VALUES)).rejects.toThrow('run chmod o-w on it')
  expect(await readdir(join(home, 'open'))).toEqual([])
  const broken = join(home, 'broken.json')
  await writeFile(broken, '{"api_key": "sk-mine"')
  await expect(keepSettings(broken, VALUES)).rejects.toThrow(/^\S+ is not valid JSON\.$/)
  expect(await readFile(broken, 'utf8')).toBe('{"api_key": "sk-mine"')
})

test('a file of another user is refused', async () => {
  // Root can give a file away; for everybody else, this one belongs to root.
  let path = '/etc/passwd'
  if (process.getuid?.() === 0) {
    path = join(home, 'other.json')
    await writeFile(path, '{}')
    await chown(path, OTHER_USER, OTHER_USER)
  }
  const before = await readFile(path, 'utf8')
  await expect(keepSettings(path, VALUES)).rejects.toThrow(/belongs to another user \(\d+\)/)
  expect(await readFile(path, 'utf8')).toBe(before)
})
