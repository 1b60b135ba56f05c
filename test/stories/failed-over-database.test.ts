/** The database fails over to a synchronous standby during runs of two instances: nothing is lost, and nothing is interrupted. */
import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { bash, setStage } from '../support/agent.ts'
import { instanceOn } from '../support/instances.ts'
import { brokenRules } from '../support/log-rules.ts'
import { startPostgres } from '../support/postgres.ts'
import { startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const RUNS = 8

test('eight runs with running commands, at two instances, outlive a failover to a synchronous standby', async () => {
  const command = 'echo a; touch begun; while [ ! -e go ]; do sleep 0.05; done; echo b'
  const script = { replies: [{ turns: [bash(command), bash('echo c'), { text: 'Done.' }] }] }
  await using opened = new AsyncDisposableStack()
  const place = await mkdtemp(join(tmpdir(), 'failover-'))
  opened.defer(() => rm(place, { recursive: true, force: true, maxRetries: 3 }))
  await chmod(place, 0o711)
  for (const name of ['primary', 'standby']) await mkdir(join(place, name))
  const primary = opened.use(await startPostgres(join(place, 'primary')))
  const database = await primary.createDatabase()
  const standby = opened.use(await primary.startStandby(join(place, 'standby')))
  const url = database.url.replace(`:${database.port}/`, `:${database.port},127.0.0.1:${standby.port}/`)
  const env = instanceOn({ url })
  const stage = opened.use(await setStage(script, { env }))
  const servers = [stage.server, opened.use(await startServer({ env }))] as const
  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
  const message = { role: 'user', content: 'Go.' }
  const runs = await Promise.all(
    Array.from({ length: RUNS }, async (_, number) => {
      const { call } = servers[number % 2]!
      const { id, workdir } = (await call('POST', '/conversations', { llm_config })).body
      const reported = await call('POST', `/conversations/${id}/messages`, { message, run: true })
      expect(reported.status, JSON.stringify(reported.body)).toBe(202)
      await until('the command', async () => existsSync(join(workdir, 'begun')))
      return { id: String(id), workdir: String(workdir), reported: reported.body, call }
    }),
  )

  await primary.stop('SIGQUIT')
  // The results are there before anybody can store them.
  for (const { workdir } of runs) await writeFile(join(workdir, 'go'), '')
  await standby.promote()
  for (const { id, reported, call } of runs) {
    await until('the end of the run', async () => (await call('GET', `/conversations/${id}`)).body.status === 'idle')
    const events = await stage.events(id)
    expect(brokenRules(events)).toEqual([])
    const summary = events.filter(({ type }) => ['ToolResult', 'Result', 'UserMessage'].includes(type))
    expect(summary.map(({ type, stop_reason: reason, is_error: isError }) => [type, reason ?? isError])).toEqual([
      ['UserMessage', undefined],
      ['ToolResult', false],
      ['ToolResult', false],
      ['Result', 'completed'],
    ])
    expect(summary[0]).toMatchObject({ id: reported.event_id, seq: reported.seq })
  }
})
