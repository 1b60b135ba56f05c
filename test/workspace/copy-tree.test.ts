import { mkdir, mkdtemp, readFile, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as tick } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createRandom } from '../support/random.ts'
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

/** Not by a recursive `readdir`: that follows links. */
async function textsIn(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { withFileTypes: true })
  const texts = await Promise.all(
    entries.map(async (entry) => {
      const path = join(directory, entry.name)
      return entry.isDirectory() ? await textsIn(path) : entry.isFile() ? [await readFile(path, 'utf8')] : []
    }),
  )
  return texts.flat()
}

/** Time passes between the first look at a directory and its turn, the more the more files come before. */
test.each([
  ['file', 0],
  ['place', 20],
])('a %s that is swapped for a link meanwhile brings nothing from outside', async (name, files) => {
  const put = async (directory: string, text: string) => {
    if (name === 'file') return await writeFile(join(directory, name), text)
    await mkdir(join(directory, name))
    await writeFile(join(directory, name, 'file'), text)
  }
  await put(outside, 'from outside')
  await put(from, 'mine')
  for (let n = 0; n < files; n++) await writeFile(join(from, `${n}`), 'mine')
  const [place, link, kept] = [join(from, name), join(home, 'link'), join(home, 'kept')]
  await symlink(join(outside, name), link)
  const over = new AbortController()
  const random = createRandom(1)
  // Of no even length: the two would come to go in step.
  const pause = async () => {
    for (let ticks = random.below(6); ticks > 0; ticks--) await tick()
  }
  const swapping = (async () => {
    while (!over.signal.aborted) {
      await rename(place, kept)
      await rename(link, place)
      await pause()
      await rename(place, link)
      await rename(kept, place)
      await pause()
    }
  })()
  const seen = new Set<string>()
  try {
    for (let n = 0; n < 300; n++) {
      await mkdir(join(to, `${n}`))
      await copyTree(from, join(to, `${n}`), options)
      for (const text of await textsIn(join(to, `${n}`))) seen.add(text)
    }
  } finally {
    over.abort()
    await swapping
  }
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
