/** What the disk says for a deny rule, on real directories: in doubt, a file is there. */
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createDisk } from '../../src/policy/disk.ts'

const MIB = 1024 * 1024

/** A directory with these files; a name that ends with a slash is an empty directory. */
function makeDirectory(files: Readonly<Record<string, string | Buffer>> = {}): string {
  const root = mkdtempSync(join(realpathSync(tmpdir()), 'agent-server-disk-'))
  onTestFinished(() => rmSync(root, { recursive: true }))
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(root, name.endsWith('/') ? name : dirname(name)), { recursive: true })
    if (!name.endsWith('/')) writeFileSync(join(root, name), text)
  }
  return root
}

const NONE: ReadonlySet<string> = new Set()

test('a file exists, and so does a link that leads nowhere; what cannot be looked up may exist', () => {
  const root = makeDirectory({ a: '' })
  symlinkSync('nowhere', join(root, 'link'))
  const { exists } = createDisk()
  expect(['a', 'link', 'b', 'a/b', '\0'].filter((name) => exists(join(root, name)))).toEqual(['a', 'link', 'a/b', '\0'])
})

test('a directory holds what is below it, except for directories that are left out', () => {
  const root = makeDirectory({ 'a/b/c': '', 'd/c': '', e: '' })
  const found = (skips: ReadonlySet<string>) => {
    const paths: string[] = []
    createDisk().holds(root, (path) => (paths.push(path.slice(root.length + 1)), false), skips)
    return paths.toSorted()
  }
  expect(found(NONE)).toEqual(['a', 'a/b', 'a/b/c', 'd', 'd/c', 'e'])
  expect(found(new Set(['b', 'e']))).toEqual(['a', 'a/b', 'd', 'd/c', 'e'])
  const holds = (name: string) => createDisk().holds(root, (path) => path === join(root, name), NONE)
  expect([holds('a/b/c'), holds('e'), holds('f')]).toEqual([true, true, false])
})

test('a directory that is missing holds nothing, and what cannot be listed may hold anything', () => {
  const root = makeDirectory({ a: '' })
  const { holds, holdsOptions } = createDisk()
  expect(holds(join(root, 'b'), () => false, NONE)).toBe(false)
  expect(holds(join(root, 'a'), () => false, NONE)).toBe(true)
  expect(holdsOptions(join(root, 'b'))).toBe(false)
  expect(holdsOptions(join(root, 'a'))).toBe(true)
})

test('a name that is not UTF-8 may be any name, and what is below it may be anything', () => {
  const root = makeDirectory()
  expect(createDisk().holds(root, () => false, NONE)).toBe(false)
  mkdirSync(Buffer.from(`${root}/d\xFF`, 'latin1'))
  const { holds, holdsOptions, exists } = createDisk()
  expect(holds(root, () => false, NONE)).toBe(true)
  const shownPath = join(root, 'd\uFFFD')
  expect([holds(shownPath, () => false, NONE), holdsOptions(shownPath), exists(shownPath)]).toEqual([true, true, true])
})

test('a directory whose path is too long for one call may hold anything', () => {
  const root = makeDirectory()
  const script = 'for ((i = 0; i < 20; i += 1)); do mkdir "$1" && cd "$1"; done'
  execFileSync('bash', ['-c', script, 'bash', 'a'.repeat(250)], { cwd: root })
  expect(createDisk().holds(root, () => false, NONE)).toBe(true)
})

test('2000 entries of a directory are looked at: one with more may hold anything', () => {
  const root = makeDirectory(Object.fromEntries(Array.from({ length: 1999 }, (_, at) => [`a/${at}`, ''])))
  const holds = () => createDisk().holds(root, () => false, NONE)
  expect(holds()).toBe(false)
  writeFileSync(join(root, 'more'), '')
  expect(holds()).toBe(true)
})

test('a name that begins with a dash may be taken for an option', () => {
  expect(createDisk().holdsOptions(makeDirectory({ 'a-': '', 'b/-c': '' }))).toBe(false)
  expect(createDisk().holdsOptions(makeDirectory({ a: '', '-b': '' }))).toBe(true)
})

const indexOf = (version: number, names = 'a.key\0') =>
  Buffer.concat([Buffer.from([0x44, 0x49, 0x52, 0x43, 0, 0, 0, version]), Buffer.from(names)])

test.each<[rule: string, files: Record<string, string | Buffer>, isTracked: boolean]>([
  ['tracks what is in its index', { '.git/index': indexOf(2) }, true],
  ['tracks nothing else', { '.git/index': indexOf(2, 'b.key\0') }, false],
  ['is read in version 3', { '.git/index': indexOf(3, 'b.key\0') }, false],
  [
    'may track anything with an index of version 4, which shortens names',
    { '.git/index': indexOf(4, 'b.key\0') },
    true,
  ],
  ['tracks nothing before it has an index', { '.git/': '' }, false],
  ['may have its index elsewhere, if .git is a file', { '.git': 'gitdir: x' }, true],
  ['may track anything, if its index is too short', { '.git/index': 'DIRC' }, true],
  ['may track anything, if its index is no file', { '.git/index/': '' }, true],
])('a repository %s', (_, files, isTracked) => {
  const root = makeDirectory({ ...files, 'a/b/': '' })
  for (const directory of [root, join(root, 'a/b')])
    expect(createDisk().tracks(directory, ['a.key\0', 'c\0']), directory).toBe(isTracked)
})

test('outside of a repository, git compares any files', () => {
  expect(createDisk().tracks(makeDirectory(), ['a'])).toBe(true)
  expect(createDisk().tracks('.git-is-nowhere', ['a'])).toBe(true)
})

test('an index of up to 8 MiB is searched, and all rules together search up to 256 MiB', () => {
  const root = makeDirectory({ '.git/index': indexOf(2, 'a.key\0') })
  truncateSync(join(root, '.git/index'), 8 * MIB)
  const { tracks } = createDisk()
  const texts = Array.from({ length: 33 }, (_, at) => `${at}.pem`)
  const tracked = texts.map((text) => tracks(root, [text]))
  expect(tracked).toEqual(texts.map((_, at) => at === 32))
  // What is known is not searched again.
  expect(tracks(root, ['0.pem'])).toBe(false)
  truncateSync(join(root, '.git/index'), 8 * MIB + 1)
  expect(createDisk().tracks(root, ['b'])).toBe(true)
})

test('ignore files of a directory, of those above it and of the user make a search include what it leaves out', () => {
  const root = makeDirectory({
    'a/.gitignore': 'x\n!one\n',
    'a/.ignore': '! two \n#!x\n',
    '.rgignore': '!three',
    '.git/info/exclude': '!four\n',
    'a/b/.ignore': '!five\n',
    'a/.other': '!x\n',
    more: '!six\n',
  })
  const { included } = createDisk()
  expect(included(join(root, 'a'), [join(root, 'more')])).toEqual(['six', 'one', 'two', 'three', 'four'])
  expect(included(root, [])).toEqual(['three', 'four'])
})

test('an ignore file that is too long, or is not a file, may include anything', () => {
  const root = makeDirectory({ '.gitignore': '', 'a/.ignore/': '' })
  const included = (name: string) => createDisk().included(join(root, name), [])
  truncateSync(join(root, '.gitignore'), 64 * 1024)
  expect(included('')).toEqual([])
  expect(included('a')).toEqual(['*'])
  truncateSync(join(root, '.gitignore'), 64 * 1024 + 1)
  expect(included('')).toEqual(['*'])
})

test('a file that may not be read may include anything', () => {
  const root = makeDirectory({ '.gitignore': '!x\n' })
  chmodSync(join(root, '.gitignore'), 0)
  // The superuser reads it anyway.
  expect(createDisk().included(root, [])).toEqual(process.getuid?.() === 0 ? ['x'] : ['*'])
  expect(createDisk().included(root, ['\0'])).toContain('*')
})
