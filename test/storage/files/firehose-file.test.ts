/** The order of the firehose, and the heads that are saved beside it: with them, without them, or with those of another time. */
import { copyFile, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { FirehoseFile } from '../../../src/storage/files/firehose/firehose-file.ts'
import { uuid7 } from '../../../src/lib/uuid7.ts'
import { tempDirectory } from '../../events/fixtures.ts'

/** As many as are worth saving the heads of. */
const MANY = 60_000

const [first, second] = [uuid7(), uuid7()]

async function addTo(path: string, ...heads: readonly (readonly [id: string, head: number])[]): Promise<void> {
  await using order = await FirehoseFile.open(path)
  await order.add(heads.map(([conversationId, head]) => ({ conversationId, head })))
}

async function headsIn(path: string): Promise<{ count: number; heads: number[] }> {
  await using order = await FirehoseFile.open(path)
  return { count: order.last, heads: [order.headOf(first), order.headOf(second)] }
}

test('saved heads are those of the records; damaged ones, and those of other records, are not used', async () => {
  await using directory = await tempDirectory()
  const path = join(directory.path, 'firehose')
  const saved = `${path}-heads`
  await addTo(path, [first, 3])
  await expect(stat(saved), 'too few are not saved').rejects.toThrow('ENOENT')
  await addTo(path, [second, MANY])
  const all = { count: MANY + 3, heads: [3, MANY] }
  expect(await headsIn(path)).toEqual(all)

  // They are used: of a record before them, nothing is read any more.
  const records = await readFile(path)
  await writeFile(path, Buffer.from(records).fill(0, 24, 48))
  expect(await headsIn(path)).toEqual(all)
  await writeFile(path, records)

  await addTo(path, [first, 5])
  expect(await headsIn(path), 'with what came after them').toEqual({ count: MANY + 5, heads: [5, MANY] })

  const heads = await readFile(saved)
  for (const damage of [
    heads.subarray(0, 40),
    heads.subarray(0, 5),
    Buffer.from(heads).fill(1, 60, 61),
    Buffer.alloc(0),
  ]) {
    await writeFile(saved, damage)
    expect(await headsIn(path)).toEqual({ count: MANY + 5, heads: [5, MANY] })
  }
  await writeFile(saved, heads)

  // The index is an older copy, and has gone another way since.
  await copyFile(path, `${path}-copy`)
  await truncate(path, 24 * (MANY - 100))
  await addTo(path, [first, 500])
  expect(await headsIn(path)).toEqual({ count: MANY - 101 + 497, heads: [500, MANY - 104] })

  // Another index was begun in its place.
  await rm(path)
  expect(await headsIn(path)).toEqual({ count: 0, heads: [0, 0] })
})
