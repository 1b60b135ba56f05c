/** What is done to the files under a server: it says what is wrong with what, and everything else goes on. */
import { chmod, mkdir, readFile, readdir, readlink, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { subscribe } from '../support/stream.ts'
import { PATIENCE_S, effort } from '../support/patience.ts'

const SCRIPT = {
  replies: [
    { when: 'wait', turns: [bash('until [ -e go ]; do sleep 0.02; done'), { text: 'Waited.' }] },
    { turns: [bash('echo hello'), { text: 'Hello.' }] },
  ],
}

/** Root may write anything; without these it may write what its permissions say, as everybody else. */
const BOUND_BY_PERMISSIONS =
  process.getuid!() === 0 ? ['setpriv', '--bounding-set', '-dac_override,-dac_read_search', '--'] : []

const sessionOf = ({ server }: Stage, id: string) => join(server.dataDir, 'sessions', id)
const logOf = (stage: Stage, id: string) => join(sessionOf(stage, id), 'events.jsonl')

const completed = expect.arrayContaining([
  expect.objectContaining({ type: 'Result', stop_reason: 'completed', final_text: 'Hello.' }),
])

test('an unwritable data directory is reported; existing data can be read, and all works once it is writable', async () => {
  await using stage = await setStage(SCRIPT, { wrapper: BOUND_BY_PERMISSIONS })
  const { server } = stage
  const id = await stage.create()
  const { seq } = (await stage.say(id, 'hi')).at(-1)
  // What lists are made of, so that the start has nothing to find out from the log, which cannot be opened then.
  const noted = async () => JSON.parse(await readFile(join(sessionOf(stage, id), 'meta.json'), 'utf8')).lastSeq
  await expect.poll(noted).toBe(seq)
  const closed = ['sessions', 'active', join('sessions', id)].map((name) => join(server.dataDir, name))
  for (const path of closed) await chmod(path, 0o500)
  await chmod(logOf(stage, id), 0o400)
  await server.restart('SIGKILL')

  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl }
  const refused = [
    await server.call('POST', '/conversations', { llm_config }),
    await server.call('POST', `/conversations/${id}/messages`, { message: { role: 'user', content: 'x' }, run: true }),
  ]
  for (const { status, body } of refused) {
    expect({ status, ...body }).toMatchObject({
      status: 500,
      error: 'storage_failed',
      message: expect.stringContaining('EACCES'),
    })
  }
  expect((await server.call('GET', '/conversations')).body.items).toMatchObject([{ id, status: 'idle' }])

  for (const path of closed) await chmod(path, 0o700)
  await chmod(logOf(stage, id), 0o600)
  expect(await stage.say(id, 'hi')).toEqual(completed)
  expect(await stage.say(await stage.create(), 'hi')).toEqual(completed)
})

test('a run whose mark cannot be written does not begin; once permissions are restored the conversation continues', async () => {
  await using stage = await setStage(SCRIPT, { wrapper: BOUND_BY_PERMISSIONS })
  const { server } = stage
  const id = await stage.create()
  await stage.say(id, 'hi')
  const active = join(server.dataDir, 'active')
  await expect.poll(() => readdir(active)).toEqual([])
  await chmod(active, 0o500)
  const refused = await server.call('POST', `/conversations/${id}/run`)
  expect(refused).toMatchObject({ status: 500, body: { error: 'storage_failed' } })
  expect((await server.call('GET', `/conversations/${id}`)).body.status).toBe('idle')
  await chmod(active, 0o700)
  expect(await stage.say(id, 'hi')).toEqual(completed)
})

test.each(['with', 'without'])(
  'a log damaged in the middle, %s its meta.json: its conversation says so and where; the others work',
  async (how) => {
    await using stage = await setStage(SCRIPT)
    const { server } = stage
    const [hurt, sound] = [await stage.create(), await stage.create()]
    for (const id of [hurt, sound]) await stage.say(id, 'hi')
    await server.stop()
    const lines = (await readFile(logOf(stage, hurt), 'utf8')).split('\n')
    lines[3] = 'x'.repeat(lines[3]!.length)
    await writeFile(logOf(stage, hurt), lines.join('\n'))
    if (how === 'without') await rm(join(sessionOf(stage, hurt), 'meta.json'))
    await server.restart()

    expect((await server.call('GET', `/conversations/${hurt}/events`)).body).toMatchObject({
      error: 'conversation_damaged',
      message: expect.stringContaining('line 4'),
    })
    if (how === 'with') {
      // All that is known of it is sound, until the agent has to read the whole.
      const { body } = await server.call('POST', `/conversations/${hurt}/run`, { wait: true, timeout: PATIENCE_S })
      expect(body).toMatchObject({ status: 'error', result: { stop_reason: 'error' } })
    }
    const { items } = (await server.call('GET', '/conversations?status=error')).body
    expect(items.map((item: { id: string }) => item.id)).toEqual([hurt])
    expect(await stage.say(sound, 'hi')).toEqual(completed)
    expect((await server.call('DELETE', `/conversations/${hurt}`)).status).toBe(204)
  },
)

test.each(['alone', 'with all that lies beside it'])('a log deleted under the server in mid-run, %s', async (how) => {
  await using stage = await setStage(SCRIPT)
  const { server } = stage
  const [hurt, other] = [await stage.create(), await stage.create()]
  const stream = await subscribe(server.url, `/conversations/${hurt}/events/stream`)
  await server.call('POST', `/conversations/${hurt}/messages`, {
    message: { role: 'user', content: 'wait' },
    run: true,
  })
  await stream.until(({ event }) => event === 'ToolUse')
  await rm(how === 'alone' ? logOf(stage, hurt) : sessionOf(stage, hurt), { recursive: true, maxRetries: 9 })
  await writeFile(join(server.dataDir, 'work', hurt, 'go'), '')

  const look = async () => (await server.call('GET', `/conversations/${hurt}`)).body
  await expect
    .poll(look)
    .toMatchObject({ error: 'conversation_damaged', message: expect.stringContaining('is missing') })
  stream.close()
  expect(
    stream.frames.map(({ event }) => event),
    'nothing is shown that is not stored',
  ).not.toContain('ToolResult')
  const { items } = (await server.call('GET', '/conversations?status=error')).body
  expect(items.map((item: { id: string }) => item.id)).toEqual([hurt])
  expect(await stage.say(other, 'hi')).toEqual(completed)

  expect((await server.call('DELETE', `/conversations/${hurt}`)).status).toBe(204)
  expect(await look()).toMatchObject({ error: 'conversation_deleted' })
  expect((await server.call('GET', '/conversations/count')).body.count).toBe(1)
})

test('a log deleted while the server runs is reported on the next request', async () => {
  await using stage = await setStage(SCRIPT)
  const { server } = stage
  const [hurt, other] = [await stage.create(), await stage.create()]
  await stage.say(hurt, 'hi')
  await server.restart()
  await rm(logOf(stage, hurt))
  const message = { message: { role: 'user', content: 'hi' }, run: true }
  expect(await server.call('POST', `/conversations/${hurt}/messages`, message)).toMatchObject({
    status: 409,
    body: { error: 'conversation_damaged', message: expect.stringContaining('is missing') },
  })
  expect(await stage.say(other, 'hi')).toEqual(completed)
})

test('without any meta.json the server starts with the same conversations, and writes the files again', async () => {
  await using stage = await setStage(SCRIPT)
  const { server } = stage
  const ids = await Promise.all(Array.from({ length: 30 }, (_, i) => stage.create({ title: `Number ${i}` })))
  // The log of a conversation without a run is as short as the file.
  await Promise.all(ids.map((id) => stage.say(id, 'hi')))
  const list = async () => (await server.call('GET', '/conversations?limit=1000')).body
  const before = await list()
  await server.stop()
  for (const id of ids) await rm(join(sessionOf(stage, id), 'meta.json'))
  await server.restart()
  expect(await list()).toEqual(before)
  for (const id of ids) await expect.poll(() => readdir(sessionOf(stage, id))).toContain('meta.json')
  expect(await stage.say(ids[0]!, 'hi')).toEqual(completed)
})

test('secrets that are lost are asked for again, and the rest of the conversation is as it was', async () => {
  await using stage = await setStage(SCRIPT)
  const { server } = stage
  const id = await stage.create()
  await stage.say(id, 'hi')
  await server.stop()
  await rm(join(sessionOf(stage, id), 'secrets.enc'))
  await server.restart()
  const requests = stage.model.requests.length
  const failed = await stage.say(id, 'hi')
  expect(failed.find((event) => event.type === 'ErrorEvent')).toMatchObject({
    error_type: 'auth',
    message: expect.stringContaining('send llm_config.api_key'),
  })
  expect(stage.model.requests, 'nothing is asked without the key').toHaveLength(requests)
  const llm_config = { api_key: 'another-key-of-the-model' }
  expect((await server.call('PUT', `/conversations/${id}/config`, { llm_config })).status).toBe(200)
  expect(await stage.say(id, 'hi')).toEqual(completed)
})

const MANY = effort(1000, 10_000)
/** What the index of all of them may take, and the pages that were listed, megabytes. */
const MAX_MB_OF_MANY = 150

test(`${MANY} conversations on disk: the server starts, lists and counts them without opening a log`, async () => {
  await using stage = await setStage(SCRIPT)
  const { server } = stage
  const id = await stage.create()
  await stage.say(id, 'hi')
  await server.stop()
  const alone = await megabytesAfterStart(stage)
  await server.stop()
  const files = await Promise.all(
    ['meta.json', 'events.jsonl'].map(async (name) => [name, await readFile(join(sessionOf(stage, id), name), 'utf8')]),
  )
  for (let made = 1; made < MANY; made += 100) {
    await Promise.all(Array.from({ length: Math.min(100, MANY - made) }, () => copyAs(stage, crypto.randomUUID())))
  }
  async function copyAs(of: Stage, copy: string): Promise<void> {
    await mkdir(sessionOf(of, copy))
    for (const [name, text] of files) await writeFile(join(sessionOf(of, copy), name!), text!.replaceAll(id, copy))
  }

  const withAll = await megabytesAfterStart(stage)
  expect((await server.call('GET', '/conversations/count')).body.count).toBe(MANY)
  const ids = new Set<string>()
  for (let page = ''; ;) {
    const { items, next_page_id } = (await server.call('GET', `/conversations?limit=1000${page}`)).body
    for (const item of items) ids.add(item.id)
    if (next_page_id === null) break
    page = `&page_id=${next_page_id}`
  }
  expect(ids.size).toBe(MANY)
  const names = await readdir(`/proc/${server.pid}/fd`)
  const opened = await Promise.all(names.map((name) => readlink(`/proc/${server.pid}/fd/${name}`).catch(() => '')))
  expect(opened.filter((path) => path.endsWith('events.jsonl'))).toEqual([])
  expect(withAll - alone).toBeLessThan(MAX_MB_OF_MANY)
  expect(await stage.say(id, 'hi')).toEqual(completed)
})

async function megabytesAfterStart({ server }: Stage): Promise<number> {
  await server.restart()
  return (Number(/VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${server.pid}/status`, 'utf8'))![1]) * 1024) / 1e6
}
