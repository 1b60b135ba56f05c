/** One server on PostgreSQL: what it has acknowledged is there after `kill -9`, also with an empty data directory. */
import { existsSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { bash, setStage } from '../support/agent.ts'
import { startPgBouncer } from '../support/pgbouncer.ts'
import { createDatabase } from '../support/postgres.ts'
import { launch, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

test('a server on PostgreSQL keeps everything there, shows its URL to no agent, and a second one is refused', async () => {
  const command = 'cat note.txt; echo note > note.txt; env | grep -c DATABASE; echo "$TOKEN" | wc -c'
  const script = { replies: [{ turns: [bash(command), { text: 'Done.' }] }] }
  await using database = await createDatabase()
  const env = { OPENHANDS_DATABASE_URL: database.url }
  await using stage = await setStage(script, { env })
  const { server } = stage
  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
  const created = await server.call('POST', '/conversations', {
    title: 'kept',
    llm_config,
    secrets: { TOKEN: 'a-secret-worth-keeping' },
  })
  const { id } = created.body
  const key = await server.call('POST', '/keys', { name: 'reader', scopes: ['read'] })
  expect([created.status, key.status]).toEqual([201, 201])
  const run = async (text: string) => {
    const message = { role: 'user', content: text }
    await server.call('POST', `/conversations/${id}/messages`, { message })
    return (await server.call('POST', `/conversations/${id}/run`, { wait: true })).body.result.stop_reason
  }
  const events = async () => (await server.call('GET', `/conversations/${id}/events?limit=100`)).body.items
  expect(await run('Do it.')).toBe('completed')
  const before = await events()
  expect(JSON.stringify(before)).toContain('0\\n23')
  const [rows] = await database.query('select count(*)::int as count from events where conversation_id = $1', [id])
  expect(rows!['count']).toBeGreaterThanOrEqual(before.length)

  await server.restart('SIGKILL')
  expect(await events()).toEqual(before)
  expect(await run('Again.')).toBe('completed')
  const last = await server.call('GET', `/conversations/${id}/events?types=ToolResult&order=desc&limit=1`)
  expect(JSON.stringify(last.body.items)).toContain('note\\n0\\n23')

  const second = launch(['serve'], {
    env: {
      ...env,
      OPENHANDS_MASTER_KEY: 'another-master-key-012345',
      OPENHANDS_DATA_DIR: `${server.home}/second`,
      OPENHANDS_SERVER_PORT: '0',
    },
    cwd: server.home,
  })
  expect(await second.exited).toBe(1)
  expect(second.output()).toContain('in use by another instance')

  // Another machine: nothing but the database is there.
  await server.stop('SIGKILL')
  await rename(server.dataDir, `${server.home}/former`)
  await server.restart()
  const list = await server.call('GET', '/conversations')
  expect(list.body.items).toMatchObject([{ id, title: 'kept' }])
  expect(await events()).toHaveLength((await events()).length)
  expect(JSON.stringify(await events())).toContain(JSON.stringify(before[0]).slice(1, 60))
  const asReader = { authorization: `Bearer ${key.body.key}` }
  expect((await server.call('GET', `/conversations/${id}`, undefined, asReader)).status).toBe(200)
  expect(server.output() + second.output()).not.toContain(new URL(database.url).password)
})

test('a server whose lock another one has taken while it slept ends its runs, stops, and says why', async () => {
  const script = { replies: [{ turns: [bash('echo $$ > pid.txt; sleep 600')] }] }
  await using database = await createDatabase()
  const env = { OPENHANDS_DATABASE_URL: database.url }
  await using stage = await setStage(script, { env })
  const { server } = stage
  const id = await stage.create()
  const workdir = (await server.call('GET', `/conversations/${id}`)).body.workdir
  await server.call('POST', `/conversations/${id}/messages`, { message: { role: 'user', content: 'Go.' }, run: true })
  await until('the command', () => Promise.resolve(existsSync(join(workdir, 'pid.txt'))))

  process.kill(server.pid, 'SIGSTOP')
  const sessions = "select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and granted"
  await database.query(`${sessions} and database = (select oid from pg_database where datname = current_database())`)
  await using second = await startServer({ env })
  process.kill(server.pid, 'SIGCONT')

  expect(await server.exited()).toBe(1)
  expect(server.output()).toMatch(/agent-server: Another server has taken over the database/)
  const { status } = (await second.call('GET', `/conversations/${id}`)).body
  expect(status, 'the other one has recovered the conversation').toBe('paused')
  expect(server.output()).not.toContain('"pids"')
})

test('a server works through PgBouncer in transaction mode, and says at once that it needs another URL for sessions', async () => {
  await using database = await createDatabase()
  await using pooler = await startPgBouncer(database, 'transaction')
  const env = { OPENHANDS_DATABASE_URL: pooler.url, OPENHANDS_DATABASE_SESSION_URL: database.url }
  const script = { replies: [{ turns: [bash('env | grep DATABASE || echo nothing'), { text: 'Done.' }] }] }
  await using stage = await setStage(script, { env })
  const id = await stage.create()
  const events = await stage.say(id, 'Do it.')
  expect(events.findLast(({ type }) => type === 'Result')).toMatchObject({ stop_reason: 'completed' })
  expect(JSON.stringify(events.find(({ type }) => type === 'ToolResult').output)).toContain('"nothing')
  await stage.server.restart('SIGKILL')
  expect((await stage.events(id)).filter(({ type }) => type === 'Result')).toHaveLength(1)

  const second = launch(['serve'], {
    env: {
      OPENHANDS_DATABASE_URL: pooler.url,
      OPENHANDS_MASTER_KEY: 'another-master-key-012345',
      OPENHANDS_DATA_DIR: `${stage.server.home}/second`,
      OPENHANDS_SERVER_PORT: '0',
    },
    cwd: stage.server.home,
  })
  expect(await second.exited).toBe(1)
  expect(second.output()).toContain('Set OPENHANDS_DATABASE_SESSION_URL to the database itself')
})

test('after a failover that has lost events, a conversation is as the database has it, before anything is appended', async () => {
  await using database = await createDatabase()
  await using stage = await setStage(
    { replies: [{ turns: [{ text: 'Done.' }] }] },
    { env: { OPENHANDS_DATABASE_URL: database.url } },
  )
  const id = await stage.create()
  const events = await stage.say(id, 'hello')
  const last = events.filter(({ seq }) => seq !== undefined).at(-1)
  // As a standby that lacks the last event.
  await database.query('delete from events where conversation_id = $1 and seq = $2', [id, last.seq])
  await database.query('update conversations set head = $2 where id = $1', [id, last.seq - 1])
  await database.query(`select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()`)
  // The end of the run is among what was lost.
  const view = async () => (await stage.server.call('GET', `/conversations/${id}`)).body
  await until('the conversation without it', async () => (await view()).status === 'error')
  expect((await stage.events(id)).map(({ id: eventId }) => eventId)).not.toContain(last.id)
  expect(stage.server.output()).toContain('the database has lost events')
})
