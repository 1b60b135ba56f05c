/** The program of the guard, with bash in the place of the server. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { GUARD_SCRIPT } from '../../../src/shell/guard/guard-script.ts'
import { findDescendants, findProcess } from '../../../src/shell/processes/process-table.ts'
import { tempDirectory } from '../../events/fixtures.ts'
import { until } from '../../support/until.ts'

/** Starts a program, and copies itself: the copy begins its program when the file is there. */
const SERVER = 'sleep 1000 & (until [[ -e "$1/go" ]]; do :; done; exec sleep 1001) & wait'

test('a copy of the server is stopped when it has begun its program, not before: the server waits for it', async () => {
  await using place = await tempDirectory()
  const server = spawn('bash', ['--norc', '-c', SERVER, 'server', place.path], { stdio: 'ignore' })
  const mark = `AGENT_SERVER_STATE_DIR=${place.path}/`
  const guard = spawn('bash', ['--norc', '-c', GUARD_SCRIPT, 'agent-server-guard', String(server.pid), mark], {
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  const stateOf = ({ pid }: { readonly pid: number }) => findProcess(pid)?.state
  const children = await until('both', async () => {
    const found = findDescendants(Number(server.pid))
    return found.length === 2 && found
  })
  const states = () => children.map(stateOf)
  guard.stdin.write('until 1\n')
  await until('the stop of the program', async () => states().includes('T'))
  guard.stdin.write('until 1\n'.repeat(3))
  expect(states().filter((state) => state === 'T')).toHaveLength(1)
  await writeFile(join(place.path, 'go'), '')
  await until('the stop of both', async () => states().every((state) => state === 'T'))
  guard.stdin.write('kill\n')
  await until('the end of both', async () => states().every((state) => state === undefined || state === 'Z'))
  guard.stdin.end()
  server.kill('SIGKILL')
  await Promise.all([once(guard, 'close'), server.exitCode ?? server.signalCode ?? once(server, 'close')])
})
