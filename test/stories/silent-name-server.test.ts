/** A name server that does not answer: lookups of a name hang in the system, where nobody can end them. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { bash, setStage } from '../support/agent.ts'

/** More than the threads that look up names. */
const STUCK = 20

/** The C library reads this file for each name without a dot that is not in /etc/hosts, and nobody writes into the pipe. */
async function silentNames(): Promise<Record<string, string>> {
  const directory = await mkdtemp(join(tmpdir(), 'silent-names-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  const pipe = join(directory, 'aliases')
  await promisify(execFile)('mkfifo', [pipe])
  return { HOSTALIASES: pipe }
}

test('models with a name that cannot be looked up delay neither those with other names, nor the end of the server', async () => {
  await using stage = await setStage([bash('echo hello'), { text: 'Done.' }], { env: await silentNames() })
  const { server } = stage
  const { port } = new URL(stage.model.baseUrl)
  const createAt = (host: string) =>
    stage.create({ llm_config: { model: 'scripted', base_url: `http://${host}:${port}/v1`, api_key: 'a-key' } })
  const ask = (id: string) =>
    server.call('POST', `/conversations/${id}/messages`, { message: { role: 'user', content: 'hi' }, run: true })
  for (const id of await Promise.all(Array.from({ length: STUCK }, () => createAt('unresolved')))) await ask(id)

  // As long as a lookup hangs, so would each that waits for it.
  expect((await stage.say(await createAt('localhost'), 'hi')).find(({ type }) => type === 'Result')).toMatchObject({
    stop_reason: 'completed',
  })
  expect(await server.stop(), 'the runs are paused, and all has ended').toBe(0)
})
