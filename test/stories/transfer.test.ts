/** From files into PostgreSQL and back: the same server continues, and nothing is lost or different. */
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { bash, setStage } from '../support/agent.ts'
import { runCommand } from '../support/command.ts'
import { createDatabase } from '../support/postgres.ts'

test('a server goes from files to PostgreSQL and back with everything it has', async () => {
  const script = {
    replies: [{ turns: [bash('cat note.txt; echo note >> note.txt; echo "$TOKEN" | wc -c'), { text: 'Done.' }] }],
  }
  await using database = await createDatabase()
  await using stage = await setStage(script, { env: { OPENHANDS_CALLBACK_ALLOW: '127.0.0.1' } })
  const { server } = stage
  const call = async (method: string, path: string, body?: unknown, headers?: Record<string, string>) =>
    await server.call(method, path, body, headers)
  const id = await stage.create({ title: 'kept', secrets: { TOKEN: 'a-secret-worth-keeping' } })
  await stage.say(id, 'Do it.')
  const callback = await call('POST', `/conversations/${id}/callbacks`, {
    url: 'http://127.0.0.1:9/hook',
  })
  const command = await call(
    'POST',
    `/conversations/${id}/commands`,
    { command: 'echo from a client' },
    { 'idempotency-key': 'once' },
  )
  const { key, id: keyId } = (await call('POST', '/keys', { name: 'reader', scopes: ['read'] })).body
  expect([callback.status, command.status]).toEqual([201, 200])
  const gone = await stage.create({ title: 'gone' })
  await call('DELETE', `/conversations/${gone}`)

  const look = async () => ({
    events: await stage.events(id),
    list: (await call('GET', '/conversations')).body.items.map(({ id: each, title }: Record<string, unknown>) => [
      each,
      title,
    ]),
    callbacks: (await call('GET', `/conversations/${id}/callbacks`)).body.items.map((each: Record<string, unknown>) => [
      each['id'],
      each['url'],
    ]),
    commands: (await call('GET', `/conversations/${id}/commands`)).body,
    deleted: (await call('GET', `/conversations/${gone}`)).status,
    asReader: (await call('GET', `/conversations/${id}`, undefined, { authorization: `Bearer ${key}` })).status,
  })
  const files = await look()
  expect(files).toMatchObject({ list: [[id, 'kept']], deleted: 410, asReader: 200 })

  const env = { OPENHANDS_DATABASE_URL: database.url }
  const transfer = async (...args: string[]) => await runCommand(args, { env, cwd: server.home })
  const busy = await transfer('import', '--from', server.dataDir)
  expect([busy.code, busy.stderr]).toEqual([1, expect.stringContaining('is in use by another server')])
  await server.stop()
  const imported = await transfer('import', '--from', server.dataDir)
  expect(imported.stderr).toBe('')
  expect(imported.stdout).toContain(`1 conversations with ${files.events.length} events`)
  await server.restart('SIGTERM', env)
  expect(await look()).toEqual(files)
  const running = await transfer('export', '--to', server.dataDir)
  expect([running.code, running.stderr]).toEqual([1, expect.stringContaining('is in use by another server')])

  const next = await stage.say(id, 'Again.')
  expect(JSON.stringify(next), 'the workdir and the secret are there').toContain('note\\n23')
  const other = await stage.create({ title: 'from the database' })
  await call('DELETE', `/keys/${keyId}`)
  const onDatabase = await look()
  expect(onDatabase.asReader, 'the key is revoked').toBe(401)
  await server.stop()
  // Where OPENHANDS_DATABASE_URL leads to a pooler, the commands need the database itself.
  const behindPooler = {
    OPENHANDS_DATABASE_URL: 'postgresql://127.0.0.1:9/pooler',
    OPENHANDS_DATABASE_SESSION_URL: database.url,
  }
  const exported = await runCommand(['export', '--to', server.dataDir], { env: behindPooler, cwd: server.home })
  expect(exported.stderr).toBe('')
  await server.restart('SIGTERM', { OPENHANDS_DATABASE_URL: '' })
  expect(await look()).toEqual(onDatabase)
  expect(JSON.stringify(await stage.say(id, 'Once more.'))).toContain('note\\nnote\\n23')
  await stage.say(other, 'Go.')
  await server.stop()

  const again = await transfer('import', '--from', server.dataDir)
  expect(again.stderr, 'a database that a server has used is not written').toContain('A server has used this database')
})

test('an import changes nothing that is there and different, and names what it cannot copy', async () => {
  await using database = await createDatabase()
  await using stage = await setStage({ replies: [{ turns: [{ text: 'Done.' }] }] }, { env: {} })
  const { server } = stage
  const [id, damaged] = [await stage.create(), await stage.create()]
  await stage.say(id, 'Go.')
  await server.stop()
  const env = { OPENHANDS_DATABASE_URL: database.url }
  const importAgain = async () => await runCommand(['import', '--from', server.dataDir], { env, cwd: server.home })
  const log = join(server.dataDir, 'sessions', damaged, 'events.jsonl')
  const text = await readFile(log, 'utf8')
  await writeFile(log, text.replace('"seq":1,', '"seq":7,'))
  const refused = await importAgain()
  expect(refused.code).toBe(1)
  expect(refused.stderr).toContain(`conversation ${damaged} cannot be copied`)
  await writeFile(log, text)

  await database.query("update events set json = replace(json, 'Go.', 'No.') where conversation_id = $1", [id])
  expect((await importAgain()).stderr).toContain(`conversation ${id} is different in the database`)
  await database.query("update events set json = replace(json, 'No.', 'Go.') where conversation_id = $1", [id])
  expect((await importAgain()).stderr).toBe('')

  const elsewhere = join(server.home, 'elsewhere')
  const exportTo = async (place: string) => await runCommand(['export', '--to', place], { env, cwd: server.home })
  expect((await exportTo(elsewhere)).stderr, 'half an import is never exported').toContain('has no data of a server')
  expect((await importAgain()).stderr).toContain('was imported into this database already')
  const logOf = join(server.dataDir, 'sessions', id, 'events.jsonl')
  await writeFile(logOf, (await readFile(logOf, 'utf8')).replace('Go.', 'No.'))
  const refusedExport = await exportTo(server.dataDir)
  expect(refusedExport.stderr).toContain('events that are not the first of the')
  await expect(readFile(join(server.dataDir, 'database'), 'utf8')).resolves.toMatch(/^[0-9a-f-]{36}\n$/)
  await rm(logOf)
  expect((await exportTo(server.dataDir)).stderr).toBe('')
  await server.restart('SIGTERM')
  expect((await stage.events(id)).length).toBeGreaterThan(2)
})
