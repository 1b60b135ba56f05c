/** Files as the users of a conversation meet them: beside its agent, over restarts, and with a disk that is full. */
import { mkdir, readFile, readdir, writeFile } from 'node:fs/promises'
import http from 'node:http'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { bash, setStage } from '../support/agent.ts'
import type { TestServer } from '../support/server.ts'
import { hasFiles, KEY, startServer } from '../support/server.ts'
import { borrowServer } from '../support/shared-server.ts'

const shared = await borrowServer()
afterAll(() => shared[Symbol.asyncDispose]())

async function createOn(server: TestServer): Promise<{ id: string; workdir: string }> {
  const llm_config = { model: 'none', base_url: 'http://127.0.0.1:9/v1', api_key: 'no-model-key' }
  return (await server.call('POST', '/conversations', { llm_config })).body
}

async function upload(server: TestServer, path: string, files: Record<string, string>, headers = {}) {
  const body = new FormData()
  for (const [name, content] of Object.entries(files)) body.append('file', new Blob([content]), name)
  const response = await fetch(server.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, ...headers },
    body,
  })
  return { status: response.status, body: (await response.json()) as any } // eslint-disable-line typescript/no-explicit-any
}

const put = async (server: TestServer, path: string, body: string) =>
  await fetch(server.url + path, { method: 'PUT', headers: { authorization: `Bearer ${KEY}` }, body })

const get = async (server: TestServer, path: string) =>
  await fetch(server.url + path, { headers: { authorization: `Bearer ${KEY}` } })

test('what a user uploads the agent finds, and what the agent makes a user downloads', async () => {
  await using stage = await setStage([bash('sort names/list.txt > sorted.txt; echo done'), { text: 'Sorted.' }], shared)
  const { server } = stage
  const id = await stage.create()
  const base = `/conversations/${id}`
  const uploaded = await upload(server, `${base}/files/upload?path=names/`, { 'list.txt': 'b\na\n' })
  expect(uploaded).toMatchObject({ status: 201, body: { items: [{ path: 'names/list.txt', size: 4 }] } })
  await stage.say(id, 'Sort the names.')

  const download = await get(server, `${base}/files/sorted.txt`)
  expect(await download.text()).toBe('a\nb\n')
  const { items } = (await server.call('GET', `${base}/files?recursive=true`)).body
  expect(items.map(({ path }: { path: string }) => path)).toEqual(['names', 'names/list.txt', 'sorted.txt'])
  const found = (await server.call('GET', `${base}/file-search?content=a&q=*.txt`)).body
  expect(found.items).toMatchObject([
    { path: 'names/list.txt', line: 2, text: 'a' },
    { path: 'sorted.txt', line: 1 },
  ])

  const events = await stage.events(id)
  const update = events.find((event) => event.type === 'FileUpdate')
  expect(update).toMatchObject({ source: 'user', path: 'names/list.txt', action: 'upload', size: 4 })
  expect(JSON.stringify(stage.model.requests), 'the model receives nothing about it').not.toContain('upload')
})

test('an upload with a key is made once, also when the server was killed in between', async () => {
  const server = shared
  const { id } = await createOn(server)
  const send = (content: string) =>
    upload(
      server,
      `/conversations/${id}/files/upload`,
      { 'a.txt': content, 'b.txt': 'b' },
      { 'idempotency-key': 'once' },
    )
  const first = await send('a')
  await put(server, `/conversations/${id}/files/a.txt`, 'changed since')
  await server.restart('SIGKILL')
  expect(await send('a')).toEqual(first)
  expect(await (await get(server, `/conversations/${id}/files/a.txt`)).text()).toBe('changed since')
  expect(await send('other')).toMatchObject({ status: 422, body: { error: 'idempotency_mismatch' } })
})

test('what a killed server left of an upload is removed', async () => {
  const server = shared
  const { id, workdir } = await createOn(server)
  await mkdir(join(workdir, 'deep'))
  const { hostname, port } = new URL(server.url)
  const request = http.request({
    hostname,
    port,
    method: 'PUT',
    path: `/conversations/${id}/files/deep/er/a`,
    headers: { authorization: `Bearer ${KEY}` },
  })
  request.on('error', () => {})
  request.write('half')
  await expect.poll(() => readdir(join(workdir, 'deep'))).toHaveLength(1)
  await server.restart('SIGKILL')
  await expect.poll(() => readdir(join(workdir, 'deep')), { message: 'without a request' }).toEqual([])
})

test('without room an upload is refused whole, and the file that was there stays', async () => {
  // A limit on the size of files fails writes as a full disk does, and needs no file system of its own.
  await using server = await startServer({ wrapper: ['bash', '-c', 'ulimit -S -f 64; exec "$@"', 'bash'] })
  const { id, workdir } = await createOn(server)
  const path = `/conversations/${id}/files/a`
  expect((await put(server, path, 'before')).status).toBe(201)
  const large = 'x'.repeat(100_000)
  const refused = await put(server, path, large)
  expect(refused.status).toBe(507)
  expect(await refused.json()).toMatchObject({ error: 'storage_full' })
  const form = await upload(server, `/conversations/${id}/files/upload`, { b: 'fits', c: large })
  expect(form).toMatchObject({ status: 507, body: { error: 'storage_full' } })
  expect(await readdir(workdir)).toEqual(['a'])
  expect(await readFile(join(workdir, 'a'), 'utf8')).toBe('before')
})

test.runIf(hasFiles)('a change that cannot be logged any more is reported as made', async () => {
  await using server = await startServer({ wrapper: ['bash', '-c', 'ulimit -S -f 64; exec "$@"', 'bash'] })
  const { id, workdir } = await createOn(server)
  const post = async (length: number) => {
    const message = { role: 'user', content: 'x'.repeat(length) }
    return (await server.call('POST', `/conversations/${id}/messages`, { message })).status
  }
  // Until there is no room for a single event.
  for (const length of [20_000, 2000, 200, 1]) while ((await post(length)) === 202) continue
  const answer = await put(server, `/conversations/${id}/files/a`, 'made')
  expect(answer.status).toBe(507)
  expect(await answer.json()).toMatchObject({ error: 'storage_full', details: { changed: true } })
  expect(await readFile(join(workdir, 'a'), 'utf8')).toBe('made')
})

test('in a directory that is shared, the server’s own files are not there', async () => {
  await using server = await startServer({ env: { OPENHANDS_ISOLATION: 'none' } })
  const llm_config = { model: 'none', base_url: 'http://127.0.0.1:9/v1', api_key: 'no-model-key' }
  const created = await server.call('POST', '/conversations', { llm_config, workdir: server.home })
  expect(created.status).toBe(201)
  const base = `/conversations/${created.body.id}`
  await writeFile(join(server.home, 'mine'), 'mine')
  const { items } = (await server.call('GET', `${base}/files?recursive=true`)).body
  expect(items.map(({ path }: { path: string }) => path)).toEqual(['mine'])
  for (const path of ['files/data/lock.db', 'files/data', `file-info/data/sessions/${created.body.id}/events.jsonl`])
    expect((await server.call('GET', `${base}/${path}`)).body.error, path).toBe('unsafe_path')
  expect((await server.call('DELETE', `${base}/files/data?recursive=true`)).body.error).toBe('unsafe_path')
  expect((await server.call('GET', `${base}/file-search?content=SystemInit`)).body.items).toEqual([])
})
