/** What is removed with a conversation, and that nothing else is, whatever an agent does there meanwhile. */
import { execFile } from 'node:child_process'
import { existsSync, readdirSync, renameSync, symlinkSync } from 'node:fs'
import { link, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as tick } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { removeTree } from '../../../src/files/trees/remove-tree.ts'
import { effort } from '../../support/patience.ts'

const execute = promisify(execFile)
let home: string
let tree: string

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'remove-tree-'))
  tree = join(home, 'tree')
  await mkdir(tree)
})
afterEach(() => rm(home, { recursive: true, force: true }))

test('a directory that is swapped for a link meanwhile leads to no file outside', async () => {
  const victim = join(home, 'victim')
  await mkdir(join(victim, 'deep'), { recursive: true })
  const names = Array.from({ length: 2000 }, (_, n) => `${n}`)
  for (const name of names) await writeFile(join(victim, name), 'kept')
  await writeFile(join(victim, 'deep/file'), 'kept')
  let swapped = 0
  // On a busy machine a removal may be over before the swap.
  for (let round = 0; round < effort(3, 100) || (swapped === 0 && round < 1000); round++) {
    const [place, moved] = [join(tree, 'place'), join(tree, 'moved')]
    await mkdir(join(place, 'deep'), { recursive: true })
    for (const name of ['deep/file', ...names]) await link(join(home, 'victim/deep/file'), join(place, name))
    const removing = removeTree(tree)
    while (existsSync(place) && readdirSync(place).length > names.length) await tick()
    // The agent's side of it, at once.
    if (existsSync(place)) {
      renameSync(place, moved)
      symlinkSync(victim, place)
      swapped++
    }
    await removing
    expect(existsSync(tree)).toBe(false)
    await mkdir(tree)
  }
  expect(swapped).toBeGreaterThan(0)
  expect((await readdir(victim)).length).toBe(names.length + 1)
  expect(await readdir(join(victim, 'deep'))).toEqual(['file'])
})

test('a directory of many names takes little memory', async () => {
  const count = effort(20_000, 500_000)
  for (let made = 0; made < count; made += 1000) {
    // A file may have 65,000 names.
    const file = join(tree, `file-${made - (made % 50_000)}`)
    await writeFile(file, '')
    await Promise.all(Array.from({ length: 1000 }, (_, n) => link(file, join(tree, `${made + n}`))))
  }
  // In a process of its own: the memory of this one grows with what other tests have left.
  const child = join(import.meta.dirname, '../children/remove-tree.ts')
  const { stdout } = await execute(process.execPath, ['--max-semi-space-size=4', child, tree])
  expect(existsSync(tree)).toBe(false)
  // All names at once took 2 kB each.
  expect(Number(stdout) / 1e6).toBeLessThan(25)
})

test('a tree of thousands of levels goes, with few descriptors', async () => {
  await execute('mkdir', ['-p', 'd/'.repeat(1500)], { cwd: tree })
  let most = 0
  const watch = setInterval(() => {
    readdir('/proc/self/fd').then(
      (names) => (most = Math.max(most, names.length)),
      () => {},
    )
  }, 5)
  const before = (await readdir('/proc/self/fd')).length
  await removeTree(tree)
  clearInterval(watch)
  expect(existsSync(tree)).toBe(false)
  expect(most - before).toBeLessThan(150)
})

test('names that are not text, links, pipes and unreadable entries are removed; a link’s target stays', async () => {
  await writeFile(join(home, 'outside'), 'kept')
  const script =
    'cd "$0"; touch $"\\xff\\xfe" "a\nb"; ln -s ../outside link; ln -s nowhere gone; mkfifo pipe; mkdir -p a/b; touch a/b/c; chmod 0 a/b a'
  await execute('bash', ['-c', script, tree])
  await removeTree(tree)
  expect(await readdir(home)).toEqual(['outside'])
  await removeTree(tree)
  await removeTree(join(home, 'no/such/place'))
  await symlink(join(home, 'outside'), tree)
  await removeTree(tree)
  expect(await readdir(home)).toEqual(['outside'])
})
