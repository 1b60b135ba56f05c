/** Whatever name a file has on disk: as it is listed it can be asked for, and nothing outside the workdir can. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { effort } from '../support/patience.ts'
import { KEY, expectProblem, setHttp } from './fixtures.ts'

const headers = { authorization: `Bearer ${KEY}` }

/** How a client asks for a path that a listing has given it. */
const encoded = (path: string) => path.split('/').map(encodeURIComponent).join('/')

const PIECES = [
  '\\',
  '%',
  '%2F',
  '%2f',
  '%2e',
  '%252F',
  '%00',
  '%5c',
  '%zz',
  '.',
  '..',
  '...',
  '?',
  '#',
  '&',
  ';',
].concat(
  [':', '*', '+', ' ', '\t', '\n', '\r', '"', "'", '~', '$', '@', '|', '<', '>', '\u007f', '\u0001', 'é', 'e\u0301'],
  ['\ufffd', '\u202e', '\ufeff', '漢', '😀', 'a', 'upload', 'files', '__proto__', '-', '[', '{', '\\..\\', '..;'],
)

/** What the file system takes for a name. */
const isName = (name: string) =>
  name !== '' && name !== '.' && name !== '..' && Buffer.byteLength(name) <= 255 && !name.startsWith('.upload-')

const Name = fc
  .array(fc.constantFrom(...PIECES), { minLength: 1, maxLength: 6 })
  .map((pieces) => pieces.join(''))
  .filter(isName)
const Path = fc.array(Name, { minLength: 1, maxLength: 3 })

async function setUp() {
  const http = await setHttp()
  const id = await http.create()
  const { workdir } = (await http.call('GET', `/conversations/${id}`)).body as { workdir: string }
  const base = `${await http.listen()}/conversations/${id}`
  const ask = (path: string, init: RequestInit = {}) => fetch(base + path, { headers, ...init })
  const list = async (query = 'recursive=true') =>
    ((await (await ask(`/files?${query}`)).json()) as { items: { path: string; type: string }[] }).items
  return { http, id, workdir, ask, list, [Symbol.asyncDispose]: () => http[Symbol.asyncDispose]() }
}

test('every listed file can be described, read, searched and deleted by the path that the list shows', async () => {
  await using it = await setUp()
  await fc.assert(
    fc.asyncProperty(fc.array(Path, { minLength: 1, maxLength: 6 }), async (paths) => {
      for (const names of paths) {
        const file = join(it.workdir, ...names)
        // Another one may have a file where this one has a directory, or the other way round.
        await mkdir(dirname(file), { recursive: true }).catch(() => {})
        await writeFile(file, `content of ${names.join('/')}`).catch(() => {})
      }
      const items = await it.list()
      expect(items.length).toBeGreaterThan(0)
      for (const { path, type } of items) {
        const at = encoded(path)
        expect((await it.ask(`/file-info/${at}`)).status, path).toBe(200)
        if (type === 'directory') {
          expect((await it.list(`path=${encodeURIComponent(path)}`)).length, path).toBeGreaterThan(0)
          expect((await it.ask(`/files/${at}?format=tar.gz`, { method: 'HEAD' })).status, path).toBe(200)
          continue
        }
        expect((await it.ask(`/files/${at}`, { method: 'HEAD' })).status, path).toBe(200)
        const read = await it.ask(`/files/${at}`)
        expect([read.status, await read.text()], path).toEqual([200, await readFile(join(it.workdir, path), 'utf8')])
        expect((await it.ask(`/files/${at}`, { method: 'PUT', body: 'other' })).status, path).toBe(200)
        expect(await readFile(join(it.workdir, path), 'utf8')).toBe('other')
      }
      for (const { path } of items.filter(({ path: shown }) => !shown.includes('/'))) {
        const gone = await it.ask(`/files/${encoded(path)}?recursive=true`, { method: 'DELETE' })
        expect(gone.status, path).toBe(204)
      }
      expect(await it.list()).toEqual([])
    }),
    { numRuns: effort(15, 200), seed: 20_260_122 },
  )
})

test.each(['a\\b', '..\\x', 'a%2Fb', '%2e%2e', '%252e'])('a file named %s is found, but none is made', async (name) => {
  await using it = await setUp()
  const at = encodeURIComponent(name)
  const make = (method: string, path: string, body?: string) =>
    it.http.call(method, `/conversations/${it.id}${path}`, body, {
      ...(body !== undefined && { 'content-type': 'application/octet-stream' }),
    })
  for (const answer of [
    await make('PUT', `/files/${at}`, 'x'),
    await make('PUT', `/files/new/${at}/x`, 'x'),
    await make('POST', `/dirs/new/${at}`),
  ])
    expectProblem(answer, 400, 'unsafe_path')
  expect(await it.list(), 'nor anything on the way to it').toEqual([])
  await mkdir(join(it.workdir, name))
  await writeFile(join(it.workdir, name, 'x'), 'content')
  expect(await (await it.ask(`/files/${at}/x`)).text()).toBe('content')
  expect((await make('PUT', `/files/${at}/y`, 'x')).status, 'in a directory that is there').toBe(201)
})

test('names that are not UTF-8 are listed as far as possible, and the listing continues', async () => {
  await using it = await setUp()
  await writeFile(Buffer.concat([Buffer.from(`${it.workdir}/a`), Buffer.of(0xff)]), 'x')
  await writeFile(join(it.workdir, 'b'), 'x')
  expect((await it.list()).map(({ path }) => path)).toEqual(['a\ufffd', 'b'])
  expect((await it.ask(`/files/${encodeURIComponent('a\ufffd')}`)).status).toBe(404)
  expect((await it.ask('/files/a%ff')).status).toBe(400)
})
