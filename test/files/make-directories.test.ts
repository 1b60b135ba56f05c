import { mkdir, readFile, readdir, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makeDirectories } from '../../src/files/make-directories.ts'
import { tempDirectory } from '../events/fixtures.ts'

test('creates missing directories, with the given mode, and leaves existing ones unchanged', async () => {
  await using directory = await tempDirectory()
  await mkdir(join(directory.path, 'a'), { mode: 0o755 })
  await makeDirectories(join(directory.path, 'a/b/c'), 0o700)
  expect((await stat(join(directory.path, 'a'))).mode & 0o777).toBe(0o755)
  for (const made of ['a/b', 'a/b/c']) expect((await stat(join(directory.path, made))).mode & 0o777).toBe(0o700)
  await makeDirectories(join(directory.path, 'a/b/c'))
})

test('concurrent calls for the same path succeed', async () => {
  await using directory = await tempDirectory()
  await Promise.all(Array.from({ length: 20 }, () => makeDirectories(join(directory.path, 'a/b/c/d'))))
  expect((await stat(join(directory.path, 'a/b/c/d'))).isDirectory()).toBe(true)
})

test('throws, and comes back, where none can be made', async () => {
  await using directory = await tempDirectory()
  await writeFile(join(directory.path, 'file'), '')
  await symlink('nowhere', join(directory.path, 'dangling'))
  await expect(makeDirectories(join(directory.path, 'file'))).rejects.toMatchObject({ code: 'EEXIST' })
  await expect(makeDirectories(join(directory.path, 'file/below'))).rejects.toMatchObject({ code: 'ENOTDIR' })
  await expect(makeDirectories(join(directory.path, 'dangling'))).rejects.toMatchObject({ code: 'EEXIST' })
  await expect(makeDirectories('/proc/none/such')).rejects.toMatchObject({ code: 'ENOENT' })
})

test('the server creates directories in this way only: Node does not say why it failed', async () => {
  const root = join(import.meta.dirname, '../../src')
  const names = (await readdir(root, { recursive: true })).filter((name) => name.endsWith('.ts'))
  const texts = await Promise.all(names.map(async (name) => [name, await readFile(join(root, name), 'utf8')] as const))
  const others = texts.filter(([, text]) => /\bmkdir(Sync)?\([^\n]*\brecursive\b/.test(text))
  expect(others.map(([name]) => name)).toEqual([])
})
