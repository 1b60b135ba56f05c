/** A directory that was made for one conversation, and others that work in it: it goes with the last of them. */
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { setBench } from '../../conversations/fixtures.ts'

test.each([
  ['the owner is deleted first', ['owner', 'guest', 'fork', 'mover']],
  ['the owner is deleted last', ['mover', 'fork', 'guest', 'owner']],
])('stays while anyone works there: %s', async (_, order) => {
  await using bench = await setBench({ script: [] })
  const { id, state } = await bench.converse()
  const made = state.settings.workdir
  const guest = await bench.converse({ workdir: `${id}/sub` })
  const fork = await bench.manager.fork(guest.id, { workdir: 'share' })
  const mover = await bench.converse()
  const movers = mover.state.settings.workdir
  await bench.configure(mover.id, { workdir: `${id}/elsewhere` })
  await writeFile(join(made, 'sub/file'), 'theirs')
  const ids: Record<string, string> = { owner: id, guest: guest.id, fork: fork.id, mover: mover.id }
  for (const [at, name] of order.entries()) {
    if (at === 2) await bench.restart()
    await bench.manager.delete(ids[name]!)
    expect(existsSync(made), `after ${name}`).toBe(at < order.length - 1)
  }
  expect(existsSync(movers)).toBe(false)
  expect(await bench.storage.sharedWorkdirs.isShared(made)).toBe(false)
})

test('a conversation that moves within the directory stays a guest; one that moves out of it does not', async () => {
  await using bench = await setBench({ script: [] })
  const { id, state } = await bench.converse()
  const made = state.settings.workdir
  const guest = await bench.converse({ workdir: `${id}/a` })
  await bench.configure(guest.id, { workdir: `${id}/b` })
  await bench.manager.delete(id)
  expect(existsSync(join(made, 'b'))).toBe(true)
  await bench.configure(guest.id, { workdir: 'somewhere' })
  expect(existsSync(made)).toBe(false)
})

test('a client’s directory with the name of a conversation is never removed', async () => {
  await using bench = await setBench({ script: [] })
  const { id, state } = await bench.converse()
  const base = dirname(state.settings.workdir)
  const name = crypto.randomUUID()
  await mkdir(join(base, name))
  const first = await bench.converse({ workdir: `${name}/x` })
  const second = await bench.converse({ workdir: name })
  for (const each of [first.id, second.id, id]) await bench.manager.delete(each)
  expect(existsSync(join(base, name, 'x'))).toBe(true)
})
