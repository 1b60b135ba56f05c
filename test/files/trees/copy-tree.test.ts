import {
  mkdir,
  mkdtemp,
  open,
  readFile,
  readdir,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as tick } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { effort } from '../../support/patience.ts'
import { createRandom } from '../../support/random.ts'
import { copyTree } from '../../../src/files/trees/copy-tree.ts'

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
    // On a busy machine the file may be away whenever it is copied.
    for (let n = 0; n < effort(30, 1000) || (seen.size === 0 && n < 2000); n++) {
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

test('the signal ends it, and nothing is written after it has thrown', async () => {
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

test('names that are not UTF-8 are reported, not silently lost; the list of what was left out is bounded', async () => {
  await writeFile(Buffer.concat([Buffer.from(`${from}/`), Buffer.of(0xff, 0xfe)]), 'x')
  expect(await copyTree(from, to, options)).toEqual([expect.stringContaining('cannot be read')])
  for (let n = 0; n < 30; n++) {
    await writeFile(Buffer.concat([Buffer.from(`${from}/${n}`), Buffer.of(0xff)]), 'x')
  }
  const warnings = await copyTree(from, to, options)
  expect(warnings).toHaveLength(21)
  expect(warnings.at(-1)).toBe('11 more were not copied')
})

describe('a file with holes', () => {
  const blocksOf = async (path: string) => (await stat(path)).blocks * 512

  test('has them in the copy, too, and the same content', async () => {
    const path = join(from, 'sparse')
    await using file = await open(path, 'w')
    const data = [
      [0, 'at the beginning'],
      [5_000_000, 'x'.repeat(10_000)],
      [1_048_575, 'over the border of two pieces'],
      [40_000_000, 'in the middle'],
      [59_999_000, 'before a hole at the end'],
    ] as const
    for (const [at, text] of data) await file.write(text, at)
    await file.truncate(60_000_001)
    await copyTree(from, to, options)
    const copy = join(to, 'sparse')
    expect((await readFile(copy)).equals(await readFile(path))).toBe(true)
    expect((await stat(copy)).size).toBe(60_000_001)
    expect(await blocksOf(copy)).toBeLessThan(1_000_000)
    // Where the file system keeps no holes, neither has the original.
    expect(await blocksOf(path)).toBeLessThan(1_000_000)
  })

  test('counts with its full size: no file is read beyond the limit', async () => {
    await truncate(await touched(join(from, 'terabyte')), 1024 ** 4)
    await expect(copyTree(from, to, options)).rejects.toMatchObject({ code: 'workdir_too_large' })
    expect(await readdir(to)).toEqual([])
  })

  test('is not copied further after the copy was aborted', async () => {
    await truncate(await touched(join(from, 'large')), 40 * 1024 ** 3)
    const abort = new AbortController()
    const copied = copyTree(from, to, { ...options, signal: abort.signal })
    while ((await readdir(to)).length === 0) await tick()
    abort.abort()
    await expect(copied).rejects.toMatchObject({ code: 'unavailable' })
  })
})

async function touched(path: string): Promise<string> {
  await writeFile(path, '')
  return path
}

test('no more of a file is copied than was counted, however it grows meanwhile', async () => {
  const over = new AbortController()
  const path = join(from, 'growing')
  const growing = (async () => {
    while (!over.signal.aborted) {
      await writeFile(path, 'x')
      await tick()
      await truncate(path, 100 * 1024 ** 3)
      await tick()
    }
  })()
  try {
    for (let n = 0; n < 50; n++) {
      await mkdir(join(to, `${n}`))
      const limits = { entries: 10, bytes: 1000 }
      await copyTree(from, join(to, `${n}`), { ...options, limits }).catch((error: unknown) =>
        expect(error).toMatchObject({ code: 'workdir_too_large' }),
      )
      const { size } = await stat(join(to, `${n}`, 'growing')).catch(() => ({ size: 0 }))
      expect(size).toBeLessThanOrEqual(1000)
    }
  } finally {
    over.abort()
    await growing
  }
})

test('every kind of content arrives as it is', async () => {
  const contents: Record<string, Buffer> = {
    empty: Buffer.alloc(0),
    'one byte': Buffer.from('x'),
    zeros: Buffer.alloc(10_000),
    'zeros and a byte': Buffer.concat([Buffer.alloc(4096), Buffer.from('x')]),
    'a byte and zeros': Buffer.concat([Buffer.from('x'), Buffer.alloc(9000)]),
    'as large as a piece': Buffer.alloc(1024 * 1024, 'x'),
    'larger than a piece': Buffer.alloc(3_000_001, 'yz'),
  }
  for (const [name, content] of Object.entries(contents)) await writeFile(join(from, name), content, { mode: 0o640 })
  expect(await copyTree(from, to, options)).toEqual([])
  for (const [name, content] of Object.entries(contents)) {
    expect((await readFile(join(to, name))).equals(content), name).toBe(true)
    expect((await stat(join(to, name))).mode & 0o777).toBe(0o640)
  }
})

test('a workdir whose path a link has replaced is not copied', async () => {
  await writeFile(join(outside, 'key'), 'secret')
  await rename(from, join(home, 'moved'))
  await symlink(outside, from)
  await expect(copyTree(from, to, options)).rejects.toMatchObject({ code: 'unsafe_path' })
  expect(await readdir(to)).toEqual([])
})
