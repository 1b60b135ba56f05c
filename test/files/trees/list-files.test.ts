import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parseJailPath } from '../../../src/files/jail/jail-path.ts'
import { countFiles, listFiles } from '../../../src/files/trees/list-files.ts'
import { walk } from '../../../src/files/trees/tree-walk.ts'
import type { JailBench } from '../jail-fixture.ts'
import { outcomeOf, setJail } from '../jail-fixture.ts'
import { PATIENCE_MS } from '../../support/patience.ts'

const ROOT = parseJailPath('')

async function fill(bench: JailBench, ...paths: string[]): Promise<void> {
  for (const path of paths) {
    await mkdir(join(bench.workdir, path, '..'), { recursive: true })
    await writeFile(bench.inside(path), path)
  }
}

type Paging = { recursive?: boolean; limit?: number; between?: (sofar: readonly string[]) => Promise<void> }

async function pages(bench: JailBench, { recursive = true, limit = 2, between }: Paging = {}) {
  const seen: string[] = []
  let page_id: string | undefined
  do {
    const page = await listFiles(bench.jail, ROOT, { recursive, limit, page_id })
    expect(page.items.length).toBeLessThanOrEqual(limit)
    seen.push(...page.items.map((item) => item.path))
    page_id = page.next_page_id ?? undefined
    await between?.(seen)
  } while (page_id !== undefined)
  return seen
}

const PATHS = ['a-b', 'a.txt', 'a/1', 'a/b/2', 'a/b.c', 'b', 'Z', 'é', '.hidden']
const IN_ORDER = ['.hidden', 'Z', 'a', 'a/1', 'a/b', 'a/b/2', 'a/b.c', 'a-b', 'a.txt', 'b', 'é']

test('reports kind, size and time of each entry', async () => {
  await using bench = await setJail()
  await fill(bench, 'a/b')
  const { items, next_page_id } = await listFiles(bench.jail, ROOT, { recursive: true, limit: 10 })
  const mtime = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
  expect(items).toEqual([
    { path: 'a', name: 'a', type: 'directory', size: 0, mtime },
    { path: 'a/b', name: 'b', type: 'file', size: 3, mtime },
  ])
  expect(next_page_id).toBeNull()
})

test.each([1, 2, 3, 4, 5, 10, 11, 12])('pages of %i give each entry once, in order', async (limit) => {
  await using bench = await setJail()
  await fill(bench, ...PATHS)
  expect(await pages(bench, { limit })).toEqual(IN_ORDER)
  expect(await pages(bench, { limit, recursive: false })).toEqual(IN_ORDER.filter((path) => !path.includes('/')))
})

test('is stable while files are added and removed', async () => {
  await using bench = await setJail()
  await fill(bench, ...PATHS)
  const seen = await pages(bench, {
    limit: 1,
    between: async (sofar) => {
      const last = sofar.at(-1)!
      if (last === 'a/b') await rm(bench.inside('a', 'b'), { recursive: true })
      if (last === 'a/b.c') await fill(bench, 'a/a-new-one-before', 'a-c')
      if (last === 'a-b') await rm(bench.inside('a-b'))
    },
  })
  expect(seen).toEqual(['.hidden', 'Z', 'a', 'a/1', 'a/b', 'a/b.c', 'a-b', 'a-c', 'a.txt', 'b', 'é'])
})

test('continues after a name that is not valid text', async () => {
  await using bench = await setJail()
  for (const byte of [0x80, 0x90, 0xff]) await writeFile(Buffer.from([...Buffer.from(`${bench.workdir}/x`), byte]), '')
  await fill(bench, 'y')
  expect(await pages(bench, { limit: 1 })).toEqual(['x\ufffd', 'x\ufffd', 'x\ufffd', 'y'])
})

test('a cursor of another listing, or of none, is refused', async () => {
  await using bench = await setJail()
  await fill(bench, ...PATHS)
  const { next_page_id } = await listFiles(bench.jail, ROOT, { recursive: true, limit: 1 })
  for (const page_id of [next_page_id!, 'x', Buffer.from('["a"]').toString('base64url')])
    expect(await outcomeOf(() => listFiles(bench.jail, ROOT, { recursive: false, limit: 1, page_id }))).toBe(
      'invalid_cursor',
    )
})

test('a directory of more names than are held at a time is walked whole', async () => {
  await using bench = await setJail()
  const names = Array.from({ length: 700 }, (_, i) => `f${String(i).padStart(3, '0')}`)
  await fill(bench, ...names)
  const met: string[] = []
  for await (const { name } of walk(bench.jail, bench.jail.root, { recursive: true, window: 50 }))
    met.push(name.toString())
  expect(met).toEqual(names)
})

test('an incomplete upload is not shown', async () => {
  await using bench = await setJail()
  await fill(bench, '.upload-0123456789abcdef.tmp', '.upload-mine.tmp')
  expect(await pages(bench)).toEqual(['.upload-mine.tmp'])
})

test('counts existing files, and says when it stopped before the end', async () => {
  await using bench = await setJail()
  await fill(bench, ...PATHS)
  expect(await countFiles(bench.jail, ROOT, performance.now() + PATIENCE_MS)).toEqual({
    count: 9,
    directories: 2,
    symlinks: 0,
    others: 0,
    truncated: false,
  })
  expect(await countFiles(bench.jail, ROOT, performance.now() - 1)).toMatchObject({ truncated: true })
})
