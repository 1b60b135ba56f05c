import { mkdir, mkdtempDisposable, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ownCommand } from '../../src/cli/own-command.ts'

test('the command that starts the program again is one that a shell finds in that directory, or in any', async () => {
  await using home = await mkdtempDisposable(join(tmpdir(), 'own-command-'))
  const [bin, dist, main] = [join(home.path, 'bin'), join(home.path, 'my dist'), join(home.path, 'src/main.ts')]
  for (const directory of [bin, dist, join(home.path, 'src'), join(home.path, 'other')]) await mkdir(directory)
  const execPath = join(dist, 'agent-server')
  for (const file of [execPath, main, join(home.path, 'other/agent-server')]) await writeFile(file, '')
  await symlink(execPath, join(bin, 'agent-server'))

  const packed = { argv0: 'agent-server', execPath, script: undefined, cwd: home.path, path: bin }
  expect(ownCommand(packed)).toBe('agent-server')
  for (const path of [undefined, 'my dist', `${home.path}/other:${bin}`])
    expect(ownCommand({ ...packed, path }), String(path)).toBe("'my dist/agent-server'")
  expect(ownCommand({ ...packed, path: '', cwd: dist })).toBe('./agent-server')
  expect(ownCommand({ ...packed, path: '', cwd: bin })).toBe(`'${execPath}'`)

  const source = { ...packed, argv0: 'node', execPath: '/usr/bin/node', script: main }
  expect(ownCommand(source)).toBe('node src/main.ts')
  expect(ownCommand({ ...source, cwd: undefined })).toBe(`/usr/bin/node ${main}`)
  expect(ownCommand({ ...packed, path: '', cwd: undefined })).toBe(`'${execPath}'`)
  expect(ownCommand({ ...packed, cwd: undefined })).toBe('agent-server')
  await using linked = await mkdtempDisposable(join(tmpdir(), 'own-command-'))
  await symlink(main, join(linked.path, 'agent-server'))
  expect(ownCommand({ ...source, script: join(linked.path, 'agent-server'), path: linked.path })).toBe('agent-server')
})
