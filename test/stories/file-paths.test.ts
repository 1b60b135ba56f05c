/** Hostile paths, sent as they are over a socket, to every route that takes one: nothing outside the workdir is touched. */
import { createHash } from 'node:crypto'
import { mkdir, readFile, readdir, symlink, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { TestServer } from '../support/server.ts'
import { KEY, startServer } from '../support/server.ts'

const CANARY = 'CANARY-5d41402abc4b'

/** As they stand in a URL. The first part of each leads out, if it is understood wrongly. */
const WAYS_OUT = [
  '..',
  '../',
  '../..',
  '../../..',
  '%2e%2e',
  '%2E%2E',
  '.%2e',
  '%2e.',
  '..%2f',
  '..%2F..',
  '%2e%2e%2f',
  '%2e%2e/%2e%2e',
  '..%5c',
  '..\\',
  '..%255c',
  '..%252f',
  '%252e%252e',
  '%252e%252e%252f',
  '%25252e%25252e',
  '%252e%252e/%252e%252e',
  '..%00',
  '..%00/',
  '%00/..',
  '..;/..',
  './..',
  '././..',
  'dir/..',
  'dir/../..',
  'dir/%2e%2e/%2e%2e',
  'dir%2f..%2f..',
  'dir/./../..',
  'dir//..//..',
  '//',
  '/',
  '%2f',
  '%2F%2F',
  '%2fetc',
  '/etc',
  '//etc',
  '...//...//',
  '....//....//',
  '..././..././',
  '\\\\host\\share',
  'C:%5c',
  'file:%2f%2f%2fetc',
  'link',
  'link/.',
  'link%2f.',
  'dir/link',
  'dir/../link',
  'absolute',
  'absolute/..',
  'sibling',
  'up',
  'up/up',
  'self/link',
  'data',
  'proc/self/cwd',
  'fd/0',
  `${'x'.repeat(300)}/..`,
  `${'d/'.repeat(2100)}..`,
]

/** Names that look like a way out and are none, or are no text: refused, or a name in the workdir like any other. */
const ODD_NAMES = [
  '..%c0%af',
  '..%c1%9c',
  '%c0%ae%c0%ae',
  '%e0%80%ae%e0%80%ae',
  '..%u2215',
  '%uff0e%uff0e',
  '..;',
  '..?',
  '..#',
  '..%0a',
  '..%0d%0a',
  '..;/..;',
  '%ef%bc%8e%ef%bc%8e%ef%bc%8f',
  '%e2%80%a5',
  '..%20',
  '%20..',
  '..%7f',
  '-rf',
  '*',
  '~',
  '$(id)',
]

type Target = {
  readonly method: string
  readonly url: (way: string) => string
  readonly body?: (way: string) => string
}

const FORM = 'multipart/form-data; boundary=B'

const formOf = (filename: string) =>
  `--B\r\nContent-Disposition: form-data; name="file"; filename="${filename}"\r\n\r\nhostile\r\n--B--\r\n`

function targetsOf(id: string): Target[] {
  const base = `/conversations/${id}`
  return [
    { method: 'GET', url: (way) => `${base}/files/${way}/canary` },
    { method: 'GET', url: (way) => `${base}/files/${way}/canary?format=tar.gz` },
    { method: 'GET', url: (way) => `http://x${base}/files/${way}/canary` },
    { method: 'HEAD', url: (way) => `${base}/files/${way}/canary` },
    { method: 'PUT', url: (way) => `${base}/files/${way}/canary`, body: () => 'hostile' },
    { method: 'PUT', url: (way) => `${base}/files/${way}/new`, body: () => 'hostile' },
    { method: 'PUT', url: (way) => `${base}/files/${way}/canary`, body: () => '' },
    { method: 'DELETE', url: (way) => `${base}/files/${way}/canary` },
    { method: 'DELETE', url: (way) => `${base}/files/${way}/canary?recursive=true` },
    { method: 'GET', url: (way) => `${base}/file-info/${way}/canary` },
    { method: 'POST', url: (way) => `${base}/dirs/${way}/made` },
    { method: 'GET', url: (way) => `${base}/files?path=${way}/&recursive=true` },
    { method: 'GET', url: (way) => `${base}/files?path=${way}/&format=tar.gz` },
    { method: 'GET', url: (way) => `${base}/file-count?path=${way}/` },
    { method: 'GET', url: (way) => `${base}/file-search?q=canary&path=${way}/` },
    { method: 'GET', url: (way) => `${base}/file-search?content=CANARY&path=${way}/` },
    { method: 'POST', url: (way) => `${base}/files/upload?path=${way}/new`, body: () => formOf('x') },
    { method: 'POST', url: (way) => `${base}/files/upload?path=${way}/`, body: () => formOf('x') },
    { method: 'POST', url: () => `${base}/files/upload`, body: (way) => formOf(`${decoded(way)}/new`) },
  ]
}

/** What the same path would be in a form, where nothing is encoded. */
function decoded(way: string): string {
  try {
    return decodeURIComponent(way)
  } catch {
    return way
  }
}

type Raw = { readonly status: number; readonly text: string }

/** Nothing of it is looked at before it is sent. */
async function send(server: TestServer, method: string, url: string, body?: string): Promise<Raw> {
  const { hostname, port } = new URL(server.url)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  const headers = [
    'Host: x',
    `Authorization: Bearer ${KEY}`,
    'Connection: close',
    ...(body === undefined
      ? []
      : [`Content-Length: ${Buffer.byteLength(body)}`, `Content-Type: ${method === 'POST' ? FORM : 'text/plain'}`]),
  ]
  socket.write(`${method} ${url} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n${body ?? ''}`)
  const chunks: Buffer[] = []
  for await (const chunk of socket) chunks.push(chunk as Buffer)
  const text = Buffer.concat(chunks).toString('latin1')
  return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]), text }
}

/** Path -> what is there, of all but what changes by itself. */
async function snapshot(directory: string, except: readonly string[]): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name)
    if (except.some((prefix) => path.startsWith(prefix))) continue
    const content = entry.isFile()
      ? createHash('sha256')
          .update(await readFile(path))
          .digest('hex')
      : 'no file'
    found.set(path, content)
    if (entry.isDirectory()) for (const inner of await snapshot(path, except)) found.set(...inner)
  }
  return found
}

test('no way leads out: nothing is read, written, listed or deleted', async () => {
  await using server = await startServer()
  const create = async () => {
    const llm_config = { model: 'none', base_url: 'http://127.0.0.1:9/v1', api_key: 'no-model-key' }
    return (await server.call('POST', '/conversations', { llm_config })).body
  }
  const [own, sibling] = [await create(), await create()]
  const { workdir } = own
  await mkdir(join(workdir, 'dir'))
  await writeFile(join(workdir, 'dir', 'inside'), 'inside')
  // Wherever a way might lead, there is something to find.
  for (const place of [sibling.workdir, join(workdir, '..'), join(workdir, '../..'), server.home])
    await writeFile(join(place, 'canary'), CANARY)
  const links: Record<string, string> = {
    link: '..',
    'dir/link': '../..',
    absolute: server.home,
    sibling: `../${sibling.id}`,
    up: '.',
    self: 'dir',
    data: join(server.dataDir, 'sessions'),
    proc: '/proc',
    fd: '/proc/self/fd',
  }
  for (const [name, target] of Object.entries(links)) await symlink(target, join(workdir, name))
  // The log of this conversation, and what is noted of it, may change; nothing may be made beside.
  const session = join(server.dataDir, 'sessions', own.id)
  const except = [join(session, 'events.jsonl'), join(session, 'meta.json'), join(server.dataDir, 'lock.db')]
  const before = await snapshot(server.home, except)

  const wrong: string[] = []
  const tryAll = async (ways: readonly string[], isFine: (status: number) => boolean) => {
    for (const { method, url, body } of targetsOf(own.id))
      for (const way of ways) {
        const { status, text } = await send(server, method, url(way), body?.(way))
        if (!isFine(status) || text.includes(CANARY)) wrong.push(`${status} ${method} ${url(way).slice(0, 200)} ${way}`)
      }
    expect(wrong).toEqual([])
  }
  await tryAll(WAYS_OUT, (status) => [400, 404, 405, 409, 431].includes(status))
  expect(await snapshot(server.home, except)).toEqual(before)
  const { items } = (await server.call('GET', `/conversations/${own.id}/events?types=FileUpdate`)).body
  expect(items).toEqual([])

  await tryAll(ODD_NAMES, (status) => status >= 200 && status < 500)
  // Where the server notes what is on its way in.
  const unfinished = join(server.dataDir, 'unfinished')
  expect(await readdir(unfinished)).toEqual([])
  const after = await snapshot(server.home, [...except, unfinished])
  for (const path of after.keys()) if (!before.has(path) && path.startsWith(`${workdir}/`)) after.delete(path)
  expect(after).toEqual(before)

  // And what was meant well still works.
  expect((await send(server, 'GET', `/conversations/${own.id}/files/dir/inside`)).text).toContain('inside')
  expect((await send(server, 'GET', `/conversations/${own.id}/files/dir%2Finside`)).text).toContain('inside')
})
