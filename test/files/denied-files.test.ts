/** What a deny rule says is decided on what was opened: a name can be another file's by then. */
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createEditorFiles } from '../../src/files/editor-files.ts'
import { UnfinishedFiles } from '../../src/files/jail/unfinished-files.ts'
import { deniedFiles } from '../../src/policy/denied-files.ts'
import { ruleSetOf } from '../../src/policy/rules/rule-set.ts'

async function openDenied(...deny: string[]) {
  const workdir = await mkdtemp(join(await realpath(tmpdir()), 'agent-server-denied-'))
  onTestFinished(() => rm(workdir, { recursive: true }))
  await mkdir(join(workdir, 'secret'))
  await writeFile(join(workdir, 'secret/key'), 'key')
  await writeFile(join(workdir, 'open'), 'open')
  // As a process may swap it after the permission gate has decided.
  await symlink('secret/key', join(workdir, 'link'))
  const denied = deniedFiles(ruleSetOf({ allow: [], ask: [], deny }), { workdir, homes: [] })
  const files = createEditorFiles(() => ({ forbidden: [], denied }), new UnfinishedFiles(join(workdir, 'unfinished')))
  return { files, at: (name: string) => join(workdir, name), denied }
}

test('a file that may not be read is not, under any name, and not written either', async () => {
  const { files, at } = await openDenied('Read(secret/**)')
  for (const name of ['link', 'secret/key', 'secret/new'])
    await expect(files.look(at(name), 100), name).rejects.toThrow(/A deny rule of this conversation holds for/)
  expect(await files.look(at('open'), 100)).toMatchObject({ kind: 'file' })
})

test('a file that may not be edited can be read, and is not written', async () => {
  const { files, at } = await openDenied('Edit(secret/**)')
  const found = await files.look(at('link'), 100)
  if (found.kind !== 'file') throw new Error('it is a file')
  await expect(files.replace(found, Buffer.from('x'))).rejects.toThrow(/deny rule/)
  await expect(files.remove(found)).rejects.toThrow(/deny rule/)
  await expect(files.create({ kind: 'missing', path: at('secret/new') }, Buffer.from('x'))).rejects.toThrow(/deny rule/)
})

test('other rules cost nothing', async () => {
  expect((await openDenied('Bash(rm:*)', 'WebFetch', 'Read')).denied).toBeUndefined()
})
