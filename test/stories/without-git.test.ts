/** A server without git, which nothing else on the machine lacks: what needs it says so, and everything else works. */
import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { bash, setStage } from '../support/agent.ts'

const PROGRAMS = ['/usr/local/bin/git', '/usr/bin/git', '/bin/git'].filter((path) => existsSync(path))
const WITHOUT_GIT = [
  'bwrap',
  '--die-with-parent',
  '--unshare-user',
  '--dev-bind',
  '/',
  '/',
  ...PROGRAMS.flatMap((path) => ['--ro-bind', '/dev/null', path]),
]

test('without git there are no snapshots, no views of a repository, and a fork has the files of now', async () => {
  const script = ({ messages }: { messages: readonly { role: string }[] }) =>
    messages.at(-1)?.role === 'tool' ? { text: 'Done.' } : bash('echo one >f')
  await using stage = await setStage(script, { wrapper: WITHOUT_GIT, env: { OPENHANDS_ISOLATION: 'none' } })
  const { server } = stage
  await expect(stage.create({ file_checkpointing: true })).rejects.toThrow(
    'file_checkpointing needs git, and this server has none. Install git',
  )
  const id = await stage.create()
  await stage.say(id, 'go')
  expect((await stage.events(id, 'types=Result,WorkspaceSnapshot')).map(({ type }) => type)).toEqual(['Result'])
  const { last_seq } = (await server.call('GET', `/conversations/${id}`)).body
  const request = { to_seq: 1, last_seq, files: true }
  const rewind = (body: object) => server.call('POST', `/conversations/${id}/rewind`, body)
  expect(await rewind(request)).toMatchObject({ status: 404, body: { error: 'snapshot_not_found' } })
  expect((await server.call('GET', `/conversations/${id}/diff`)).body.error).toBe('snapshot_not_found')
  expect((await server.call('GET', `/conversations/${id}/git/status`)).body.error).toBe('git_unavailable')
  expect((await server.call('POST', `/conversations/${id}/fork`, { at_seq: 1 })).body.files).toMatchObject({
    from: 'now',
  })
  expect((await rewind({ ...request, files: false })).status).toBe(200)
})
