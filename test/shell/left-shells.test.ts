import { randomUUID } from 'node:crypto'
import { mkdir, mkdtempDisposable, readdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { removeLeftShells } from '../../src/shell/left-shells.ts'

test('saved states and complete outputs of the shells of a killed server stay, and nothing else', async () => {
  await using root = await mkdtempDisposable(join(tmpdir(), 'left-shells-'))
  const [stateDir, outputDir] = [join(root.path, 'shells'), join(root.path, 'outputs')]
  const fork = `@${randomUUID()}`
  const left = {
    shells: ['agent/command', 'agent/state', 'agent/state.new', 'agent/stdout-1', 'new/stderr-1', `${fork}/state`],
    outputs: ['background/1.log', 'stdout-1.txt', 'stdout-2.txt.new', 'mcp-1.txt'],
  }
  for (const [directory, names] of Object.entries(left))
    for (const path of names.map((name) => join(root.path, directory, name))) {
      await mkdir(dirname(path), { recursive: true })
      await writeFile(path, 'x')
    }
  await removeLeftShells(stateDir, outputDir)
  expect((await readdir(root.path, { recursive: true })).toSorted((a, b) => (a < b ? -1 : 1))).toEqual([
    'outputs',
    'outputs/mcp-1.txt',
    'outputs/stdout-1.txt',
    'shells',
    'shells/agent',
    'shells/agent/state',
  ])
  await removeLeftShells(join(root.path, 'none'), join(root.path, 'none'))
})
