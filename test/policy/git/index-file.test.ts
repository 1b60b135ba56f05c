/** The paths of submodules in the index of a repository. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { submodulesIn } from '../../../src/policy/git/index-file.ts'
import type { Entry } from './made-index.ts'
import { makeIndex } from './made-index.ts'

const sub = (name: string, more: Partial<Entry> = {}): Entry => ({ name, isSubmodule: true, ...more })

test.each<[rule: string, version: number, entries: readonly Entry[], paths: readonly string[]]>([
  ['no entries', 2, [], []],
  ['files only', 2, [{ name: 'a' }, { name: 'b/c' }], []],
  ['a submodule among files', 2, [{ name: 'a' }, sub('b'), { name: 'c' }], ['b']],
  [
    'names of each length up to eight bytes',
    2,
    ['a', 'bb', 'ccc', 'dddd', 'eeeee', 'ffffff', 'ggggggg', 'hhhhhhhh'].map((name) => sub(name)),
    ['a', 'bb', 'ccc', 'dddd', 'eeeee', 'ffffff', 'ggggggg', 'hhhhhhhh'],
  ],
  ['a name longer than its length can say', 2, [sub('a'.repeat(5000)), sub('b')], ['a'.repeat(5000), 'b']],
  [
    'a name as long as its length can say',
    2,
    [sub('a'.repeat(4094)), sub('b'.repeat(4095))],
    ['a'.repeat(4094), 'b'.repeat(4095)],
  ],
  ['more flags in version 3', 3, [sub('a', { isExtended: true }), sub('b')], ['a', 'b']],
  [
    'shortened names in version 4',
    4,
    [sub('abc'), sub('d', { removed: 1 }), sub('', { removed: 0 }), sub('x', { removed: 3 })],
    ['abc', 'abd', 'abd', 'x'],
  ],
  [
    'names shortened by many characters',
    4,
    [sub('a'.repeat(300)), sub('b', { removed: 200 }), sub('c', { removed: 101 }), { name: 'd' }],
    ['a'.repeat(300), `${'a'.repeat(100)}b`, 'c'],
  ],
  [
    'names shortened by very many',
    4,
    [sub('a'.repeat(20_000)), sub('b', { removed: 19_999 })],
    ['a'.repeat(20_000), 'ab'],
  ],
  ['more flags in version 4', 4, [sub('a', { isExtended: true }), sub('b', { removed: 1 })], ['a', 'b']],
  ['a name in UTF-8', 2, [sub('ü')], ['ü']],
])('an index with %s', (_, version, entries, paths) => {
  expect(submodulesIn(makeIndex(version, entries))).toEqual(paths)
  expect(submodulesIn(makeIndex(version, entries, ['TREE', 'REUC']))).toEqual(paths)
  expect(submodulesIn(makeIndex(version, entries, ['TREE', 'link'])), 'a split index').toBeUndefined()
})

const GOOD = makeIndex(2, [sub('a'), sub('bcd')])

test.each<[rule: string, bytes: Buffer]>([
  ['is empty', Buffer.alloc(0)],
  ['has another signature', Buffer.concat([Buffer.from('DIRX'), GOOD.subarray(4)])],
  ['is of version 1', makeIndex(1, [])],
  ['is of version 5', makeIndex(5, [])],
  ['ends in its header', GOOD.subarray(0, 10)],
  ['ends in an entry', GOOD.subarray(0, 60)],
  ['ends before its checksum', GOOD.subarray(0, -1)],
  ['has more behind its checksum', Buffer.concat([GOOD, Buffer.alloc(1)])],
  [
    'has an extension that is longer than the rest',
    Buffer.concat([GOOD.subarray(0, -20), Buffer.from('TREE\0\0\xff\xff', 'latin1'), Buffer.alloc(20)]),
  ],
  ['has an entry without a name', makeIndex(2, [sub('')])],
  ['has an entry without a name in version 4', makeIndex(4, [sub('a'), sub('', { removed: 1 })])],
  ['has a name that does not end where it says', makeIndex(2, [sub('a')]).fill(0x61, 62, 80)],
  ['has a name that is not UTF-8', makeIndex(2, [{ name: Buffer.from([0xff]), isSubmodule: true }])],
])('an index is not read if it %s', (_, bytes) => expect(submodulesIn(bytes)).toBeUndefined())

test('a name of a file may be anything', () => {
  expect(submodulesIn(makeIndex(2, [{ name: Buffer.from([0xff]) }, sub('a')]))).toEqual(['a'])
})

test('git makes indexes as these are', () => {
  const directory = mkdtempSync(join(tmpdir(), 'agent-server-index-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const git = (...words: string[]) => execFileSync('git', words, { cwd: directory, stdio: 'ignore' })
  git('init')
  writeFileSync(join(directory, 'a'), '')
  git('add', 'a')
  const commit = 'a'.repeat(40)
  for (const path of ['sub', 'sub-two', 'subs/three'])
    git('update-index', '--add', '--cacheinfo', `160000,${commit},${path}`)
  for (const version of ['2', '4']) {
    git('update-index', '--index-version', version)
    expect(submodulesIn(readFileSync(join(directory, '.git/index')))).toEqual(['sub', 'sub-two', 'subs/three'])
  }
})
