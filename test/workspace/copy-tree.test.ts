import { mkdir, mkdtemp, readFile, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as tick } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { copyTree } from '../../src/workspace/copy-tree.ts'

let home: string
let [from, to, outside] = ['', '', '']
const options = { without: [], signal: new AbortController().signal }

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'copy-tree-'))
  ;[from, to, outside] = ['from', 'to', 'outside'].map((name) => join(home, name)) as [string, string, string]
  for (const directory of [from, to, outside]) await mkdir(directory)
})
afterEach(() => rm(home, { recursive: true, force: true }))

const textsIn = async (directory: string): Promise<string[]> => {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  return await Promise.all(files.map((entry) => readFile(join(entry.parentPath, entry.name), 'utf8')))
}

test('whatever names are swapped for meanwhile, nothing from outside is copied', async () => {
  await mkdir(join(outside, 'place'))
  await writeFile(join(outside, 'place/file'), 'from outside')
  await writeFile(join(outside, 'file'), 'from outside')
  await mkdir(join(from, 'place'))
  await writeFile(join(from, 'place/file'), 'mine')
  await writeFile(join(from, 'file'), 'mine')
  await symlink(join(outside, 'place'), join(home, 'link to place'))
  await symlink(join(outside, 'file'), join(home, 'link to file'))
  const over = new AbortController()
  const swap = async (name: string) => {
    while (!over.signal.aborted) {
      await rename(join(from, name), join(home, `kept ${name}`))
      await rename(join(home, `link to ${name}`), join(from, name))
      await tick()
      await rename(join(from, name), join(home, `link to ${name}`))
      await rename(join(home, `kept ${name}`), join(from, name))
      await tick()
    }
  }
  const swapping = [swap('place'), swap('file')]
  const seen = new Set<string>()
  for (let n = 0; n < 150; n++) {
    await mkdir(join(to, `${n}`))
    await copyTree(from, join(to, `${n}`), options)
    for (const text of await textsIn(join(to, `${n}`))) seen.add(text)
  }
  over.abort()
  await Promise.all(swapping)
  expect([...seen]).toEqual(['mine'])
})

test('a copy is bounded in files and in bytes', async () => {
  for (let n = 0; n < 5; n++) await writeFile(join(from, `${n}`), 'x'.repeat(100))
  const limited = (entries: number, bytes: number) => copyTree(from, to, { ...options, limits: { entries, bytes } })
  await expect(limited(4, 10_000)).rejects.toMatchObject({ code: 'workdir_too_large' })
  await rm(to, { recursive: true })
  await mkdir(to)
  await expect(limited(100, 499)).rejects.toMatchObject({ code: 'workdir_too_large' })
})

test('the signal ends it, and nothing is written any more once it has thrown', async () => {
  for (let n = 0; n < 1000; n++) await writeFile(join(from, `${n}`), 'x')
  const abort = new AbortController()
  const copied = copyTree(from, to, { ...options, signal: abort.signal })
  while ((await readdir(to)).length === 0) await tick()
  abort.abort()
  await expect(copied).rejects.toMatchObject({ code: 'unavailable' })
  const { length } = await readdir(to)
  await tick()
  expect((await readdir(to)).length).toBe(length)
})

test('names that are no UTF-8 are told, not lost in silence; the list of what was left out is bounded', async () => {
  await writeFile(Buffer.concat([Buffer.from(`${from}/`), Buffer.of(0xff, 0xfe)]), 'x')
  expect(await copyTree(from, to, options)).toEqual([expect.stringContaining('cannot be read')])
  for (let n = 0; n < 30; n++) {
    await writeFile(Buffer.concat([Buffer.from(`${from}/${n}`), Buffer.of(0xff)]), 'x')
  }
  const warnings = await copyTree(from, to, options)
  expect(warnings).toHaveLength(21)
  expect(warnings.at(-1)).toBe('11 more were not copied')
})
