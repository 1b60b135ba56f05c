/** The database away, during runs: nothing is lost, and nothing is interrupted. */
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { bash, setStage } from '../support/agent.ts'
import { startCutProxy } from '../support/cut-proxy.ts'
import { createDatabase } from '../support/postgres.ts'
import { until } from '../support/until.ts'

const RUNS = 8

test('eight runs with running commands outlive an outage that refuses requests, and end as without it', async () => {
  const command = 'echo a; touch begun; while [ ! -e go ]; do sleep 0.05; done; echo b'
  const script = { replies: [{ turns: [bash(command), bash('echo c'), { text: 'Done.' }] }] }
  await using database = await createDatabase()
  const proxy = await startCutProxy(new URL(`http://127.0.0.1:${database.port}`))
  const url = new URL(database.url)
  url.port = new URL(proxy.url).port
  {
    await using stage = await setStage(script, {
      env: { OPENHANDS_DATABASE_URL: url.href, OPENHANDS_DATABASE_OUTAGE_SECONDS: '0.5' },
    })
    const { server } = stage
    const ready = async () => await server.call('GET', '/ready')
    const ids = await Promise.all(Array.from({ length: RUNS }, () => stage.create()))
    const at = async (id: string) => (await server.call('GET', `/conversations/${id}`)).body
    const workdirs = await Promise.all(ids.map(async (id) => String((await at(id)).workdir)))
    const send = (id: string, text: string) =>
      server.call('POST', `/conversations/${id}/messages`, { message: { role: 'user', content: text }, run: true })
    for (const id of ids) expect((await send(id, 'Go.')).status).toBe(202)
    for (const workdir of workdirs)
      await until('the command', () => Promise.resolve(existsSync(join(workdir, 'begun'))))

    proxy.down()
    // The results are there, and cannot be stored.
    for (const workdir of workdirs) await writeFile(join(workdir, 'go'), '')
    await until('a server that is not ready', async () => (await ready()).status === 503)
    const [first = ''] = ids
    await until('a refusal', async () => {
      const { status, body } = await send(first, 'Refused.')
      return status === 503 && body.error === 'storage_unavailable'
    })
    proxy.up()

    await until('a server that is ready', async () => (await ready()).status === 200)
    for (const id of ids) {
      await until('the end of the run', async () => (await at(id)).status !== 'running')
      const events = await stage.events(id)
      const summary = events.filter(({ type }) => ['ToolResult', 'Result', 'UserMessage'].includes(type))
      expect(summary.map(({ type, stop_reason: reason, is_error: isError }) => [type, reason ?? isError])).toEqual([
        ['UserMessage', undefined],
        ['ToolResult', false],
        ['ToolResult', false],
        ['Result', 'completed'],
      ])
    }
  }
  await proxy.close()
})
