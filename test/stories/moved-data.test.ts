/** A data directory that was moved, linked or copied: conversations continue in the workdirs that are in it. */
import { existsSync } from 'node:fs'
import { cp, readFile, readdir, rename, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { startServer } from '../support/server.ts'

test('conversations follow a moved data directory, and deleting them there removes their workdirs', async () => {
  await using server = await startServer()
  const { call, dataDir, home } = server
  const llm_config = { model: 'm' }
  const create = async (fields = {}) =>
    (await call('POST', '/conversations', { llm_config, ...fields })).body.id as string
  const run = async (id: string, command: string) =>
    (await call('POST', `/conversations/${id}/commands`, { command })).body as { stdout: string }
  const owner = await create()
  await run(owner, 'echo mine > file; mkdir deep; cd deep; export A=kept')
  const guest = await create({ workdir: `${owner}/sub` })
  const fork = (await call('POST', `/conversations/${owner}/fork`, { workdir: 'share' })).body.id as string

  // Moved to a larger disk, with a link at the former place, by which the server still knows it.
  const moved = join(home, 'moved')
  await server.stop()
  await rename(dataDir, moved)
  await symlink(moved, dataDir)
  await server.restart()
  expect(await run(owner, 'pwd; cat file; echo $A')).toMatchObject({
    stdout: `${join(moved, 'work', owner)}\nmine\nkept\n`,
  })
  expect(await run(guest, 'pwd')).toMatchObject({ stdout: `${join(moved, 'work', owner, 'sub')}\n` })
  const updates = (await call('GET', `/conversations/${owner}/events?types=ConfigUpdate`)).body.items
  expect(updates).toMatchObject([{ source: 'environment', changes: { workdir: join(moved, 'work', owner) } }])

  // A copy on the same machine leaves the original alone.
  const copy = join(home, 'copy')
  await server.stop()
  await cp(moved, copy, { recursive: true, filter: (path) => !path.endsWith('/local') })
  await server.restart('SIGTERM', { OPENHANDS_DATA_DIR: copy })
  await run(owner, 'echo changed > file')
  expect(await readFile(join(moved, 'work', owner, 'file'), 'utf8')).toBe('mine\n')
  // Not opened since the copy: that of the fork is known by its log only.
  for (const [id, isLast] of [
    [fork, false],
    [guest, false],
    [owner, true],
  ] as const) {
    expect((await call('DELETE', `/conversations/${id}`)).status).toBe(204)
    expect(existsSync(join(copy, 'work', owner)), id).toBe(!isLast)
  }
  using tables = new DatabaseSync(join(copy, 'tables.db'))
  expect(tables.prepare('SELECT * FROM shared_workdirs').all()).toEqual([])
  expect(await readdir(join(moved, 'work', owner))).toEqual(['deep', 'file', 'sub'])
})
