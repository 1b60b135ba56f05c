/** Trees of very many files: what is done with all of their names gives others their turns. */
import fs from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { sortInSlices } from '../../../src/workspace/snapshots/sort-in-slices.ts'
import { parseDifferences } from '../../../src/workspace/git/parse-diff.ts'
import { readPieces, writePieces } from '../../../src/workspace/snapshots/json-pieces.ts'
import { readTrees, rootNameOf, writeManifest } from '../../../src/workspace/snapshots/manifest.ts'
import { planRestore } from '../../../src/workspace/snapshots/plan-restore.ts'
import type { RootTree, TreeEntry, Trees } from '../../../src/workspace/snapshots/tree-entry.ts'
import { areSameTrees } from '../../../src/workspace/snapshots/write-snapshot.ts'
import { createRandom } from '../../support/random.ts'
import { openBench } from './fixture.ts'

const FILES = 10_000
/** Items that are handled at most before others get a turn. */
const MOST = 1024
const BLOB = 'e69de29bb2d1d6434b8b29ae775ad8c2e48c5391'

const file = (mode: number, blob = BLOB): TreeEntry => ({ kind: 'file', mode, blob, seen: undefined })

function treesOf(entry: (at: number) => TreeEntry): Trees {
  const entries = new Map(Array.from({ length: FILES }, (_, at) => [`f${at}`, entry(at)] as const))
  const leftOut = Array.from({ length: FILES }, (_, at) => ({ path: `l${at}`, reason: 'ignored' }) as const)
  return new Map<string, RootTree>([['/work', { entries, leftOut }]])
}

/** Returns how many turns others got. */
async function turnsOf(work: (slices: { rest: () => undefined }) => Promise<unknown>): Promise<number> {
  let turns = 0
  await work({ rest: () => void turns++ })
  return turns
}

test('others get their turns while long trees are compared, written, read and restored', async () => {
  const [one, other] = [treesOf((at) => file(at % 2 ? 0o600 : 0o644)), treesOf((at) => file(0o644, `${at}`))]
  expect(await turnsOf((slices) => areSameTrees(one, one, slices))).toBeGreaterThan(FILES / MOST)
  expect(await turnsOf((slices) => planRestore(one, other, slices))).toBeGreaterThan((3 * FILES) / MOST)

  let manifest: Buffer = Buffer.alloc(0)
  const writing = await turnsOf(async (slices) => void (manifest = await writeManifest(one, slices)))
  expect(writing).toBeGreaterThan((3 * FILES) / MOST)
  const root = rootNameOf('/work')
  const listed = Array.from({ length: FILES }, (_, at) => ({ mode: '100644', blob: BLOB, path: `${root}/f${at}` }))
  let read: Trees = new Map()
  const reading = await turnsOf(async (slices) => void (read = await readTrees(manifest, listed, slices)))
  expect(reading).toBeGreaterThan((3 * FILES) / MOST)
  expect(await areSameTrees(read, one, { rest: () => undefined })).toBe(true)

  const raw = Array.from({ length: FILES }, (_, at) => `:100644 100644 1 2 M\0f${at}\0`).join('')
  const counts = Array.from({ length: FILES }, (_, at) => `1\t2\tf${at}\0`).join('')
  const parsing = await turnsOf(async (slices) => {
    const differences = await parseDifferences(`${raw}\0${counts}`, slices)
    expect(differences).toHaveLength(FILES)
    expect(differences.at(-1)).toMatchObject({ path: `f${FILES - 1}`, status: 'modified', added: 1, removed: 2 })
  })
  expect(parsing).toBeGreaterThan((3 * FILES) / MOST)
})

test('a long list is sorted as a short one is, with turns for others', async () => {
  const random = createRandom(11)
  for (const length of [0, 1, 1023, 1024, 1025, 5000]) {
    const items = Array.from({ length }, (_, at) => ({ key: random.below(500), at }))
    const compare = (a: { key: number }, b: { key: number }) => a.key - b.key
    let sorted: readonly unknown[] = []
    const turns = await turnsOf(async (slices) => void (sorted = await sortInSlices(items, compare, slices)))
    expect(sorted).toEqual(items.toSorted(compare))
    expect(turns).toBeGreaterThanOrEqual(Math.ceil(length / MOST))
  }
})

test('lists are read as they were written, and a text without its end is refused', async () => {
  const slices = { rest: () => undefined }
  const long = Array.from({ length: 1000 }, (_, at) => `${at}\n\u2028é`)
  const lists = [['a', long] as const, ['b', []] as const]
  const text = (await Array.fromAsync(writePieces({ x: 1 }, lists, slices))).join('')
  const { head, pieces } = readPieces(Buffer.from(text), slices)
  const items = (await Array.fromAsync(pieces)).flatMap(([list, some]) => some.map((item) => [list, item]))
  expect(head).toEqual({ x: 1 })
  expect(items).toEqual(long.map((item) => ['a', item]))
  for (const length of [0, 1, 7, 8, text.indexOf('\n', 10), text.length - 1])
    expect(() => readPieces(Buffer.from(text.slice(0, length)), slices), `${length}`).toThrow()
})

test('a look of a commit that the store has lost, or one that is not whole, is not continued', async () => {
  await using bench = await openBench()
  const { workdir, store } = bench
  fs.writeFileSync(join(workdir, 'a'), 'one')
  const first = await bench.keep('first')
  await bench.reopen()
  const cache = join(store.directory, 'look.json')
  const saved = fs.readFileSync(cache, 'utf8')

  // Another commit of the same tree outlives the one of the saved look.
  const text = `tree ${first.written.tree}\nauthor a <> 1 +0000\ncommitter a <> 1 +0000\n\n`
  const other = await store.run(['hash-object', '-t', 'commit', '-w', '--stdin'], text)
  fs.writeFileSync(join(store.directory, 'refs/snapshots/first'), other)
  await store.run(['repack', '-a', '-d', '-q'])
  await bench.reopen({ saves: false })
  expect(fs.readFileSync(cache, 'utf8')).toBe(saved)
  const again = await bench.keep('again')
  await store.run(['repack', '-a', '-d', '-q'])
  expect((await store.run(['cat-file', '-t', again.written.commit])).toString().trim()).toBe('commit')

  await bench.reopen()
  fs.truncateSync(cache, fs.statSync(cache).size - 2)
  await bench.reopen({ saves: false })
  expect((await bench.look()).trees.get(workdir)?.entries.get('a')?.kind).toBe('file')
})
