import { mkdir, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createEditorFiles } from '../../../src/files/editor-files.ts'
import { copyTree } from '../../../src/files/trees/copy-tree.ts'
import { UnfinishedFiles } from '../../../src/files/jail/unfinished-files.ts'
import { makeDirectory } from '../editor-fixture.ts'

/** Each directory of the workdir with a file that a killed server was writing. */
async function leaveIn(...directories: string[]) {
  const root = await makeDirectory()
  const [workdir, notes] = [join(root, 'work'), join(root, 'notes')]
  const unfinished = new UnfinishedFiles(notes)
  const left = await Promise.all(
    directories.map(async (name) => {
      const path = join(workdir, name)
      await mkdir(path, { recursive: true })
      const file = await unfinished.note({ path }, 'upload')
      await writeFile(join(path, file), 'half')
      return file
    }),
  )
  const faults: unknown[] = []
  const start = async () =>
    await (
      await new UnfinishedFiles(notes).removeLeft((error) => void faults.push(error))
    ).removed
  return { root, workdir, notes, left, start, faults }
}

test('a link that an agent has put into the path leads the removal to no other file', async () => {
  const { root, workdir, notes, left, start, faults } = await leaveIn('a', 'b/c')
  const outside = join(root, 'outside')
  await mkdir(outside)
  for (const name of left) await writeFile(join(outside, name), 'of somebody else')
  await rm(join(workdir, 'a'), { recursive: true })
  await symlink(outside, join(workdir, 'a'))
  await rename(join(workdir, 'b'), join(workdir, 'moved'))
  await mkdir(join(workdir, 'b'))
  await symlink(outside, join(workdir, 'b/c'))
  await start()
  expect((await readdir(outside)).sort()).toEqual(left.toSorted())
  expect([await readdir(notes), faults]).toEqual([[], []])
})

test('one that cannot be removed stays noted, and does not keep the others', async () => {
  const { workdir, notes, left, start, faults } = await leaveIn('a', 'b')
  const [first, second] = left as [string, string]
  await rm(join(workdir, 'a', first))
  await mkdir(join(workdir, 'a', first))
  await start()
  expect([await readdir(notes), faults.length]).toEqual([[first], 1])
  expect(await readdir(join(workdir, 'b')), second).toEqual([])
})

test('a fork has no file that was being written at that moment', async () => {
  const { root, workdir } = await leaveIn('a')
  await writeFile(join(workdir, 'a/whole'), 'whole')
  const to = join(root, 'fork')
  await mkdir(to)
  await copyTree(workdir, to, { without: [], signal: new AbortController().signal })
  expect(await readdir(to, { recursive: true })).toEqual(['a', 'a/whole'])
})

test('an edit is noted while it is written, and no longer', async () => {
  const root = await makeDirectory()
  const notes = join(root, 'notes')
  const noted: string[][] = []
  const unfinished = new (class extends UnfinishedFiles {
    override async forget(name: string) {
      noted.push(await readdir(notes))
      await super.forget(name)
    }
  })(notes)
  const files = createEditorFiles(() => ({ forbidden: [] }), unfinished)
  await files.create({ kind: 'missing', path: join(root, 'file') }, Buffer.from('text'))
  expect(noted).toEqual([[expect.stringMatching(/^[.]edit-[0-9a-f]{16}[.]tmp$/)]])
  expect([await readdir(notes), (await readdir(root)).sort()]).toEqual([[], ['file', 'notes']])
})
