/** The index of words in a file: what it finds, what it forgets, and how it comes back when it is damaged. */
import { existsSync } from 'node:fs'
import { mkdtempDisposable, readFile, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { SearchFile } from '../../../src/storage/files/search/search-file.ts'
import type { IndexedPart, WordQuery } from '../../../src/storage/search-index.ts'

const [A, B] = ['018f0000-0000-7000-8000-00000000000a', '018f0000-0000-7000-8000-00000000000b']
const AT = Date.parse('2026-01-31T12:00:00.000Z')

let directory: Awaited<ReturnType<typeof mkdtempDisposable>>
let path: string
let index: SearchFile

beforeEach(async () => {
  directory = await mkdtempDisposable(join(tmpdir(), 'search-'))
  path = join(directory.path, 'search.db')
  index = new SearchFile(path)
})
afterEach(async () => {
  vi.useRealTimers()
  await index[Symbol.asyncDispose]()
  await directory[Symbol.asyncDispose]()
})

/** Each event is a second after the one before it. */
const part = (conversationId: string, after: number, texts: readonly string[], more: Partial<IndexedPart> = {}) => ({
  conversationId,
  after,
  through: after + texts.length,
  removed: [],
  events: texts.map((words, at) => ({ seq: after + 1 + at, at: AT + 1000 * (after + 1 + at), words })),
  ...more,
})

async function found(words: readonly string[], more: Partial<WordQuery> = {}): Promise<string[]> {
  const places = await index.find({ words, limit: 100, ...more })
  return places.map(({ conversationId, seq }) => `${conversationId.at(-1)}${seq}`)
}

describe('it finds', () => {
  beforeEach(() => index.add([part(A, 0, ['red apple', 'green apple', 'red pear']), part(B, 0, ['applause', 'red'])]))

  test('events with all words, by beginnings of words, the newest first and at most so many', async () => {
    const queries: [readonly string[], Partial<WordQuery>, readonly string[]][] = [
      [['red'], {}, ['a3', 'b2', 'a1']],
      [['plum'], {}, []],
      [['red', 'app'], {}, ['a1']],
      [['red', 'plum'], {}, []],
      [['pple'], {}, []],
      [['red'], { limit: 2 }, ['a3', 'b2']],
      [['red'], { ids: [A] }, ['a3', 'a1']],
      [['red'], { ids: [A, B], limit: 1 }, ['a3']],
      [['red'], { ids: [] }, []],
    ]
    for (const [words, more, expected] of queries) expect(await found(words, more), words.join(' ')).toEqual(expected)
    expect((await found(['appl'])).toSorted()).toEqual(['a1', 'a2', 'b1'])
    const all = await index.find({ words: ['red'], limit: 3 })
    expect(all.map(({ place }) => place.at)).toEqual([3, 2, 1].map((seconds) => AT / 1000 + seconds))
    expect(await index.find({ words: ['red'], limit: 2, after: all[1]!.place })).toEqual(all.slice(2))
  })

  test('nothing of what was removed, and all around it', async () => {
    await index.add([part(A, 3, ['red plum'], { removed: [{ afterSeq: 1, beforeSeq: 4 }] })])
    expect(await found(['red'])).toEqual(['a4', 'b2', 'a1'])
    expect(await found(['apple'])).toEqual(['a1'])
  })

  test('nothing of what a later part of the same call removes', async () => {
    const removed = [{ afterSeq: 4, beforeSeq: 6 }]
    await index.add([
      part(A, 3, ['plum', 'plum', 'plum']),
      part(A, 6, ['plum'], { removed }),
      part(B, 2, ['x', 'x', 'plum']),
    ])
    expect((await found(['plum'])).toSorted()).toEqual(['a4', 'a6', 'a7', 'b5'])
  })

  test('nothing of conversations that are forgotten', async () => {
    await index.forget([A])
    expect(await found(['red'])).toEqual(['b2'])
    expect(await index.heads()).toEqual(new Map([[B, 2]]))
    await index.add([part(A, 0, ['red again'])])
    expect(await found(['red'])).toEqual(['b2', 'a1'])
  })

  test('events of one second in the order of their times, whatever order their conversations come in', async () => {
    const at = AT + 9000
    const last = part(A, 3, [], { through: 4, events: [{ seq: 4, at: at + 900, words: 'same' }] })
    const first = part(B, 2, [], { through: 3, events: [{ seq: 3, at: at + 100, words: 'same' }] })
    await index.add([last, first])
    expect(await found(['same'])).toEqual(['a4', 'b3'])
  })

  test('events of one second in the order of their seqs', async () => {
    const events = [3, 4, 5].map((seq) => ({ seq, at: AT + 9000 + seq, words: 'same' }))
    await index.add([part(B, 2, [], { through: 5, events })])
    expect(await found(['same'])).toEqual(['b5', 'b4', 'b3'])
  })
})

test('a part that does not begin where its conversation is indexed is refused with all others', async () => {
  await index.add([part(A, 0, ['red', 'red'])])
  expect(await index.heads()).toEqual(new Map([[A, 2]]))
  for (const after of [0, 1, 3])
    await expect(index.add([part(B, 0, ['blue']), part(A, after, ['blue'])])).rejects.toThrow('other heads')
  expect(await found(['blue'])).toEqual([])
  await index.add([part(A, 2, ['blue']), part(A, 3, ['blue'])])
  expect(await index.heads()).toEqual(new Map([[A, 4]]))
  expect(await found(['blue'])).toEqual(['a4', 'a3'])
})

test('what was removed is merged once, some time after the last removal', async () => {
  await index.add([part(A, 0, ['red'])])
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  await index.forget([A])
  const once = vi.getTimerCount()
  expect(once).toBeGreaterThan(0)
  await index.forget([A])
  expect(vi.getTimerCount()).toBe(once)
  await index[Symbol.asyncDispose]()
  expect(vi.getTimerCount()).toBe(0)
})

test('forgetting makes no index where there is none, and one that is closed takes no more', async () => {
  await index.forget([A])
  expect(existsSync(path)).toBe(false)
  await index.settled()
  await index[Symbol.asyncDispose]()
  await expect(index.heads()).rejects.toMatchObject({ code: 'unavailable' })
})

test('an index is of its owner only, and stays when it is opened again', async () => {
  await index.add([part(A, 0, ['red'])])
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  await index[Symbol.asyncDispose]()
  index = new SearchFile(path)
  expect(await found(['red'])).toEqual(['a1'])
})

test.each<[string, () => Promise<void>]>([
  [
    'that is no database',
    () => writeFile(path, 'not a database, but longer than its header would have to be'.repeat(9)),
  ],
  ['that is empty', () => writeFile(path, '')],
  [
    'of another format',
    async () => {
      const bytes = await readFile(path)
      bytes.writeUInt32BE(1, 60)
      await writeFile(path, bytes)
    },
  ],
])('a file %s is made again', async (_what, damage) => {
  await index.add([part(A, 0, ['red'])])
  await index[Symbol.asyncDispose]()
  await damage()
  index = new SearchFile(path)
  expect(await index.heads()).toEqual(new Map())
  await index.add([part(A, 0, ['blue'])])
  expect(await found(['blue'])).toEqual(['a1'])
})

test('an index whose damage is found by a search fails once, and is made again', async () => {
  await index.add([
    part(
      A,
      0,
      Array.from({ length: 500 }, (_, at) => `word${at} red`),
    ),
  ])
  const bytes = await readFile(path)
  await index[Symbol.asyncDispose]()
  await writeFile(path, bytes.fill(7, 4096))
  index = new SearchFile(path)
  await expect(found(['red'])).rejects.toThrow()
  expect(await index.heads()).toEqual(new Map())
})
