import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFile, readdir, symlink, truncate, writeFile } from 'node:fs/promises'
import http from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { setInterval as every } from 'node:timers/promises'
import { afterAll, describe, expect, test } from 'vitest'
import { uuid7 } from '../../src/lib/uuid7.ts'
import type { HttpBench } from './fixtures.ts'
import { KEY, MAX_UPLOAD_BYTES, expectProblem, setHttp } from './fixtures.ts'

type FilesBench = AsyncDisposable & {
  readonly http: HttpBench
  readonly id: string
  readonly workdir: string
  readonly base: string
  readonly put: (path: string, body: string, headers?: Record<string, string>) => ReturnType<HttpBench['call']>
  readonly get: (path: string, headers?: Record<string, string>) => ReturnType<HttpBench['call']>
  readonly upload: (
    query: string,
    files: readonly Part[],
    headers?: Record<string, string>,
  ) => ReturnType<HttpBench['call']>
  readonly updates: () => Promise<{ path: string; action: string; size?: number }[]>
}

type Part = { readonly filename?: string; readonly content: string; readonly name?: string }

/** For tests that listen, or read the log of the server. */
const OWN = {}

/** The server of all tests that need no options: each has a conversation to itself. */
let shared: Promise<HttpBench> | undefined
afterAll(async () => await (await shared)?.[Symbol.asyncDispose]())

async function setFiles(fields: object = {}, options?: Parameters<typeof setHttp>[0]): Promise<FilesBench> {
  const bench = await (options ? setHttp(options) : (shared ??= setHttp()))
  const id = await bench.create(fields)
  const base = `/conversations/${id}`
  const { workdir } = (await bench.call('GET', base)).body
  return {
    http: bench,
    id,
    workdir,
    base,
    put: (path, body, headers) =>
      bench.call('PUT', `${base}/files/${path}`, body, { 'content-type': 'application/octet-stream', ...headers }),
    get: (path, headers) => bench.call('GET', `${base}/files/${path}`, undefined, headers),
    upload: (query, files, headers) =>
      bench.call('POST', `${base}/files/upload?${query}`, formOf(files), { 'content-type': FORM_TYPE, ...headers }),
    updates: async () => {
      const { items } = (await bench.call('GET', `${base}/events?types=FileUpdate`)).body
      return items.map(({ path, action, size }: { path: string; action: string; size?: number }) => ({
        path,
        action,
        ...(size !== undefined && { size }),
      }))
    },
    async [Symbol.asyncDispose]() {
      if (options) await bench[Symbol.asyncDispose]()
    },
  }
}

const BOUNDARY = 'xxBOUNDARYxx'
const FORM_TYPE = `multipart/form-data; boundary=${BOUNDARY}`

function formOf(parts: readonly Part[]): string {
  const texts = parts.map(({ filename, content, name = 'file' }) => {
    const disposition = `form-data; name="${name}"${filename === undefined ? '' : `; filename="${filename}"`}`
    return `--${BOUNDARY}\r\nContent-Disposition: ${disposition}\r\n\r\n${content}\r\n`
  })
  return `${texts.join('')}--${BOUNDARY}--\r\n`
}

describe('PUT', () => {
  test('creates a file and its missing directories, then replaces it, and logs both', async () => {
    await using files = await setFiles()
    const made = await files.put('a/b/c.txt', 'one')
    expect(made).toMatchObject({ status: 201, body: { path: 'a/b/c.txt', size: 3 } })
    expect(await files.put('a/b/c.txt', 'three')).toMatchObject({ status: 200, body: { size: 5 } })
    expect(await readFile(join(files.workdir, 'a/b/c.txt'), 'utf8')).toBe('three')
    expect(await files.updates()).toEqual([
      { path: 'a/b/c.txt', action: 'write', size: 3 },
      { path: 'a/b/c.txt', action: 'write', size: 5 },
    ])
    const event = await files.http.call('GET', `${files.base}/events/${made.body.event_id}`)
    expect(event.body).toMatchObject({ type: 'FileUpdate', source: 'user', seq: made.body.seq })
  })

  test('without content creates an empty file, or updates only the time of an existing one', async () => {
    await using files = await setFiles()
    expect(await files.put('new', '')).toMatchObject({ status: 201, body: { size: 0 } })
    const { headers } = await files.put('kept', 'content')
    expect(await files.put('kept', '')).toMatchObject({ status: 200, body: { size: 7 } })
    const after = await files.get('kept')
    expect(after.text).toBe('content')
    expect(after.headers['etag']).not.toBe(headers['etag'])
  })

  test('keeps the rights of the file it replaces', async () => {
    await using files = await setFiles()
    await writeFile(join(files.workdir, 'run.sh'), 'old', { mode: 0o750 })
    await files.put('run.sh', 'new')
    expect((await files.http.call('GET', `${files.base}/file-info/run.sh`)).body).toMatchObject({
      mode: '750',
      size: 3,
    })
  })

  test.each<[string, Record<string, string>, number]>([
    ['if-none-match', { 'if-none-match': '*' }, 412],
    ['another entity tag', { 'if-match': '"other"' }, 412],
    ['a weak one', { 'if-match': 'W/"other"' }, 412],
    ['any', { 'if-match': '*' }, 200],
  ])('of an existing file, with %s', async (_what, headers, status) => {
    await using files = await setFiles()
    await files.put('a', 'old')
    const answer = await files.put('a', 'new', headers)
    expect(answer.status).toBe(status)
    if (status === 412) expectProblem(answer, 412, 'precondition_failed')
    expect((await files.get('a')).text).toBe(status === 412 ? 'old' : 'new')
  })

  test('of a missing file, with if-match, is refused; with if-none-match it is created', async () => {
    await using files = await setFiles()
    expectProblem(await files.put('a', 'x', { 'if-match': '*' }), 412, 'precondition_failed')
    expect((await files.put('a', 'x', { 'if-none-match': '*' })).status).toBe(201)
    expect((await files.put('empty', '', { 'if-none-match': '*' })).status).toBe(201)
    expectProblem(await files.put('empty', '', { 'if-none-match': '*' }), 412, 'precondition_failed')
  })

  test('twice at the same time with the same entity tag: one of them', async () => {
    await using files = await setFiles()
    const etag = String((await files.put('a', 'old')).headers['etag'])
    const answers = await Promise.all(['b', 'c', 'd'].map((body) => files.put('a', body, { 'if-match': etag })))
    expect(statusesOf(answers)).toEqual([200, 412, 412])
    const created = await Promise.all(['b', 'c', 'd'].map((body) => files.put('n', body, { 'if-none-match': '*' })))
    expect(statusesOf(created)).toEqual([201, 412, 412])
  })

  test('stores a body of any content type unchanged, JSON and forms too', async () => {
    await using files = await setFiles()
    for (const type of ['application/json', 'text/html; charset=x', FORM_TYPE, 'x/y'])
      expect(await files.put('a', '{not json', { 'content-type': type }), type).toMatchObject({ body: { size: 9 } })
  })

  test.each(['', 'dir/', '.'])('to %j, which is not a file, is refused', async (path) => {
    await using files = await setFiles()
    const answer = await files.put(path, 'x')
    expect([400, 405], answer.text).toContain(answer.status)
    expect(await readdir(files.workdir)).toEqual([])
  })

  test('redacts a secret in the path of its event, and in no file', async () => {
    await using files = await setFiles({ secrets: { TOKEN: 'hunter2-hunter2' } })
    const { body } = await files.put('hunter2-hunter2.txt', 'hunter2-hunter2')
    expect(body.path).toBe('<secret:TOKEN>.txt')
    expect(await files.updates()).toMatchObject([{ path: '<secret:TOKEN>.txt' }])
    expect((await files.get('hunter2-hunter2.txt')).text).toBe('hunter2-hunter2')
    const { text } = await files.http.call('GET', `${files.base}/file-search?content=hunter2`)
    expect(text).not.toContain('hunter2')
    expect((await files.http.call('GET', `${files.base}/files`)).text).not.toContain('hunter2')
  })
})

describe('an upload', () => {
  test.each<[string, string, Part[], string[]]>([
    ['one file to its path', 'path=a/b.txt', [{ filename: 'x', content: '1' }], ['a/b.txt']],
    ['one file without a name to its path', 'path=b', [{ filename: '', content: '1' }], ['b']],
    ['one file into what is written as a directory', 'path=new/', [{ filename: 'x', content: '1' }], ['new/x']],
    ['one file into what is a directory', 'path=there', [{ filename: 'x', content: '1' }], ['there/x']],
    ['one file into the workdir', '', [{ filename: 'x', content: '1' }], ['x']],
    [
      'several files into a directory',
      'path=new',
      [
        { filename: 'x', content: '1' },
        { filename: 'y', content: '2' },
      ],
      ['new/x', 'new/y'],
    ],
    [
      'a tree',
      'path=.',
      [
        { filename: 'd/x', content: '1' },
        { filename: 'd/e/y', content: '2' },
      ],
      ['d/x', 'd/e/y'],
    ],
    ['a name beyond ASCII', '', [{ filename: 'grüße 😀.txt', content: '1' }], ['grüße 😀.txt']],
  ])('puts %s', async (_what, query, parts, paths) => {
    await using files = await setFiles()
    await files.http.call('POST', `${files.base}/dirs/there`)
    const { status, body } = await files.upload(query, parts)
    expect(status).toBe(201)
    const items = paths.map((path) => ({ path, size: 1, event_id: expect.any(String), seq: expect.any(Number) }))
    expect(body).toEqual({ items })
    for (const [at, path] of paths.entries())
      expect(await readFile(join(files.workdir, path), 'utf8')).toBe(parts[at]!.content)
    expect((await files.updates()).slice(1)).toEqual(paths.map((path) => ({ path, action: 'upload', size: 1 })))
  })

  test('is all or nothing: what cannot be put keeps the others from it', async () => {
    await using files = await setFiles()
    await files.http.call('POST', `${files.base}/dirs/taken`)
    const good = { filename: 'good', content: '1' }
    const refused: [Part[], number][] = [
      [[good, { filename: 'taken', content: '2' }], 409],
      [[good, { filename: '../out', content: '2' }], 400],
      [[good, good], 400],
      [[good, { name: 'field', content: '2' }], 400],
      [[good, { filename: '', content: '2' }], 400],
      [[good, { filename: 'large', content: 'x'.repeat(MAX_UPLOAD_BYTES) }], 413],
      [Array.from({ length: 101 }, (_, i) => ({ filename: `f${i}`, content: '' })), 400],
      [[], 400],
    ]
    for (const [parts, status] of refused) {
      const answer = await files.upload('path=.', parts)
      expect(answer.status, answer.text).toBe(status)
    }
    expect(await readdir(files.workdir)).toEqual(['taken'])
    expect(await files.updates()).toEqual([{ path: 'taken', action: 'mkdir' }])
  })

  test('that is not a form is refused', async () => {
    await using files = await setFiles()
    const url = `${files.base}/files/upload`
    expectProblem(await files.http.call('POST', url, '{}'), 415, 'unsupported_media_type')
    expectProblem(await files.http.call('POST', url), 415, 'unsupported_media_type')
    const types = ['multipart/form-data', `${FORM_TYPE}-other`]
    for (const type of types)
      expectProblem(
        await files.http.call('POST', url, formOf([{ filename: 'a', content: '1' }]), { 'content-type': type }),
        400,
        'invalid_request',
      )
    const cut = formOf([{ filename: 'a', content: '1' }]).slice(0, -30)
    expectProblem(await files.http.call('POST', url, cut, { 'content-type': FORM_TYPE }), 400, 'invalid_request')
    expect(await readdir(files.workdir)).toEqual([])
  })

  test('with a long header, or with a part that is not understood, is refused whole', async () => {
    await using files = await setFiles()
    const disposition = 'Content-Disposition: form-data; name="file"; filename="b"'
    const many = Array.from({ length: 300 }, (_, at) => `X-${at}: y\r\n`).join('')
    const form = (head: string, { before = '', after = '' } = {}) =>
      `${before}${formOf([{ filename: 'a', content: '1' }]).slice(0, -4)}\r\n${head}\r\n\r\n2\r\n--${BOUNDARY}--\r\n${after}`
    const send = (body: string) =>
      files.http.call('POST', `${files.base}/files/upload?path=.`, body, { 'content-type': FORM_TYPE })
    const long = 'x'.repeat(20_000)
    for (const body of [
      form(`X: ${'x'.repeat(500_000)}\r\n${disposition}`),
      form(`${disposition}\r\nX: ${long}`),
      form(`Content-Disposition: form-data; name="${long}"; filename="b"`),
      form(disposition, { before: `${long}\r\n` }),
      form(disposition, { after: long }),
      form('Content-Type: text/plain'),
      form('Content-Disposition: attachment; filename="b"'),
      form(`${disposition}\r\n--${BOUNDARY}\r\n${disposition}`),
    ])
      expectProblem(await send(body), 400, 'invalid_request')
    expect(await readdir(files.workdir)).toEqual([])
    expect((await send(form(many + disposition, { before: 'hello\r\n', after: 'bye' }))).status).toBe(201)
    expect((await readdir(files.workdir)).toSorted()).toEqual(['a', 'b'])
  })

  test('may be followed by any text, which is not a part', async () => {
    await using files = await setFiles()
    const send = (body: string) =>
      files.http.call('POST', `${files.base}/files/upload?path=.`, body, { 'content-type': FORM_TYPE })
    const afterwards = ['', '\r\n', '\r\nThe end.\r\n\r\nBye.\r\n', `\r\n--${BOUNDARY}\r\n\r\n`]
    // The form itself may have any size.
    for (const [at, after] of afterwards.entries()) {
      const parts = [{ filename: `a${at}`, content: '1'.repeat(at * 20_000) }]
      expect(await send(formOf(parts) + after)).toMatchObject({ status: 201 })
    }
    expect(await readdir(files.workdir)).toHaveLength(afterwards.length)
  })

  test('to the same path as another one at the same time leaves one of them, complete', async () => {
    await using files = await setFiles()
    const contents = ['a', 'b', 'c'].map((letter) => letter.repeat(300_000))
    await Promise.all(contents.map((content) => files.upload('path=x', [{ filename: 'x', content }])))
    expect(contents).toContain(await readFile(join(files.workdir, 'x'), 'utf8'))
    expect(await readdir(files.workdir)).toEqual(['x'])
    expect(await files.updates()).toHaveLength(3)
  })
})

describe('a key', () => {
  const parts = [
    { filename: 'x', content: '1' },
    { filename: 'y', content: '2' },
  ]

  test('makes the same upload once, and another one a mistake', async () => {
    await using files = await setFiles()
    const headers = { 'idempotency-key': 'k1' }
    const first = await files.upload('path=d', parts, headers)
    await files.put('d/x', 'changed since')
    const again = await files.upload('path=d', parts, headers)
    expect(again).toMatchObject({ status: 201, body: first.body })
    expect((await files.get('d/x')).text).toBe('changed since')
    expectProblem(await files.upload('path=e', parts, headers), 422, 'idempotency_mismatch')
    expectProblem(await files.upload('path=d', parts.toReversed(), headers), 422, 'idempotency_mismatch')
    const content = [
      { filename: 'x', content: '1' },
      { filename: 'y', content: '3' },
    ]
    expectProblem(await files.upload('path=d', content, headers), 422, 'idempotency_mismatch')
    expect(await readdir(files.workdir)).toEqual(['d'])
  })

  test('makes the same directory once', async () => {
    await using files = await setFiles()
    const make = (path: string) =>
      files.http.call('POST', `${files.base}/dirs/${path}`, undefined, { 'idempotency-key': 'k2' })
    const first = await make('a/b')
    expect(first.status).toBe(201)
    await files.http.call('DELETE', `${files.base}/files/a?recursive=true`)
    expect(await make('a/b')).toMatchObject({ status: 201, body: first.body })
    expect(await readdir(files.workdir)).toEqual([])
    expectProblem(await make('a/c'), 422, 'idempotency_mismatch')
  })

  test('that is in progress is refused', async () => {
    await using files = await setFiles({}, OWN)
    const url = new URL(await files.http.listen())
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': FORM_TYPE, 'idempotency-key': 'k3' }
    const path = `${files.base}/files/upload?path=x`
    const slow = http.request({ host: url.hostname, port: url.port, path, method: 'POST', headers })
    slow.write(formOf([{ filename: 'x', content: '1' }]).slice(0, -8))
    const answered = new Promise<http.IncomingMessage>((resolve) => slow.once('response', resolve))
    await expect.poll(() => readdir(files.workdir)).toHaveLength(1)
    const fast = await files.upload('path=x', [{ filename: 'x', content: '1' }], { 'idempotency-key': 'k3' })
    expectProblem(fast, 409, 'idempotency_in_flight')
    slow.end(`${BOUNDARY}--\r\n`.slice(-8))
    expect((await answered).resume().statusCode).toBe(201)
  })
})

describe('a download', () => {
  const TEXT = '0123456789'

  test.each<[string, number, string, string | undefined]>([
    ['bytes=0-3', 206, '0123', 'bytes 0-3/10'],
    ['bytes=4-', 206, '456789', 'bytes 4-9/10'],
    ['bytes=-3', 206, '789', 'bytes 7-9/10'],
    ['bytes=-99', 206, TEXT, 'bytes 0-9/10'],
    ['bytes=9-99', 206, '9', 'bytes 9-9/10'],
    ['bytes=10-', 416, '', 'bytes */10'],
    ['bytes=99-100', 416, '', 'bytes */10'],
    ['bytes=-0', 416, '', 'bytes */10'],
    ['bytes=3-1', 200, TEXT, undefined],
    ['bytes=a-b', 200, TEXT, undefined],
    ['bytes=-', 200, TEXT, undefined],
    ['bytes=0-1,3-4', 200, TEXT, undefined],
    ['lines=0-1', 200, TEXT, undefined],
  ])('of %s is %i', async (range, status, text, contentRange) => {
    await using files = await setFiles()
    await files.put('a', TEXT)
    const answer = await files.get('a', { range })
    expect(answer.status).toBe(status)
    if (status === 416) expectProblem(answer, 416, 'range_not_satisfiable')
    else expect(answer.text).toBe(text)
    expect(answer.headers['content-range']).toBe(contentRange)
    if (status !== 416) expect(answer.headers['content-length']).toBe(String(text.length))
  })

  test('of an empty file is empty, and has no part', async () => {
    await using files = await setFiles()
    await files.put('a', '')
    expect(await files.get('a')).toMatchObject({ status: 200, text: '', headers: { 'content-length': '0' } })
    expectProblem(await files.get('a', { range: 'bytes=0-' }), 416, 'range_not_satisfiable')
  })

  test('is not sent again to a client that has it, and refused for another version', async () => {
    await using files = await setFiles()
    await files.put('a', TEXT)
    const { headers } = await files.get('a')
    const [etag, time] = [String(headers['etag']), String(headers['last-modified'])]
    const [before, after] = ['Thu, 01 Jan 1970 00:00:00 GMT', 'Fri, 01 Jan 2100 00:00:00 GMT']
    const table: [Record<string, string>, number][] = [
      [{ 'if-none-match': etag }, 304],
      [{ 'if-none-match': `"x", W/${etag}` }, 304],
      [{ 'if-none-match': '*' }, 304],
      [{ 'if-none-match': '"x"', 'if-modified-since': after }, 200],
      [{ 'if-modified-since': time }, 304],
      [{ 'if-modified-since': after }, 304],
      [{ 'if-modified-since': before }, 200],
      [{ 'if-modified-since': 'yesterday' }, 200],
      [{ 'if-match': etag }, 200],
      [{ 'if-match': '*' }, 200],
      [{ 'if-match': '"x"' }, 412],
      [{ 'if-match': `W/${etag}` }, 412],
      [{ 'if-unmodified-since': time }, 200],
      [{ 'if-unmodified-since': before }, 412],
      [{ range: 'bytes=0-0', 'if-range': etag }, 206],
      [{ range: 'bytes=0-0', 'if-range': time }, 206],
      [{ range: 'bytes=0-0', 'if-range': '"x"' }, 200],
      [{ range: 'bytes=0-0', 'if-range': before }, 200],
      [{ range: 'bytes=0-0', 'if-none-match': etag }, 304],
    ]
    for (const [given, status] of table) {
      const answer = await files.get('a', given)
      expect({ given, status: answer.status }).toEqual({ given, status })
      if (status === 304) expect(answer).toMatchObject({ text: '', headers: { etag } })
      if (!given['range'])
        expect((await files.http.call('HEAD', `${files.base}/files/a`, undefined, given)).status).toBe(status)
    }
  })

  test('has another entity tag after each change, however small and quick', async () => {
    await using files = await setFiles()
    const tags = new Set<unknown>()
    for (const body of ['a', 'b', 'a', 'a']) tags.add((await files.put('x', body)).headers['etag'])
    expect(tags.size).toBe(4)
    expect((await files.get('x')).headers['etag']).toBe([...tags].at(-1))
  })

  test.each([
    ['a.txt', 'text/plain; charset=utf-8'],
    ['a.html', 'text/plain; charset=utf-8'],
    ['A.SVG', 'text/plain; charset=utf-8'],
    ['a.js', 'text/plain; charset=utf-8'],
    ['a.xml', 'text/plain; charset=utf-8'],
    ['a.json', 'application/json; charset=utf-8'],
    ['a.png', 'image/png'],
    ['a.pdf', 'application/octet-stream'],
    ['a.swf', 'application/octet-stream'],
    ['html', 'application/octet-stream'],
    ['.html', 'application/octet-stream'],
  ])('of %s is %s, to be saved and never executed', async (name, type) => {
    await using files = await setFiles()
    await files.put(name, '"<script>alert(1)</script>"')
    for (const method of ['GET', 'HEAD'])
      expect((await files.http.call(method, `${files.base}/files/${name}`)).headers).toMatchObject({
        'content-type': type,
        'x-content-type-options': 'nosniff',
        'content-security-policy': "default-src 'none'; sandbox",
        'content-disposition': `attachment; filename="${name}"`,
        'content-length': '27',
      })
  })

  test.each([
    ['plain name.txt', `attachment; filename="plain name.txt"`],
    ['é.txt', `attachment; filename="_.txt"; filename*=UTF-8''%C3%A9.txt`],
    ['a"b.txt', `attachment; filename="a_b.txt"; filename*=UTF-8''a%22b.txt`],
    ['a\r\nX-Y: z', `attachment; filename="a__X-Y: z"; filename*=UTF-8''a%0D%0AX-Y%3A%20z`],
    ["it's (1)*é", `attachment; filename="it's (1)*_"; filename*=UTF-8''it%27s%20%281%29%2A%C3%A9`],
  ])('of %j has its name in the header', async (name, disposition) => {
    await using files = await setFiles()
    const path = encodeURIComponent(name)
    await files.put(path, '')
    expect((await files.get(path)).headers['content-disposition']).toBe(disposition)
  })

  test('continues while the file is deleted or replaced; a shorter one breaks it off', async () => {
    await using files = await setFiles({}, OWN)
    const content = 'x'.repeat(8 * 1024 * 1024)
    const url = new URL(await files.http.listen())
    const download = async (meanwhile: () => Promise<unknown>) => {
      await writeFile(join(files.workdir, 'a'), content)
      const response = await new Promise<http.IncomingMessage>((resolve) =>
        http.get(
          {
            host: url.hostname,
            port: url.port,
            path: `${files.base}/files/a`,
            headers: { authorization: `Bearer ${KEY}` },
          },
          resolve,
        ),
      )
      await meanwhile()
      return (await buffer(response)).toString()
    }
    expect(await download(() => files.http.call('DELETE', `${files.base}/files/a`))).toBe(content)
    expect(await download(() => files.put('a', 'other'))).toBe(content)
    await expect(download(() => truncate(join(files.workdir, 'a'), 10))).rejects.toThrow('aborted')
  })

  test('of a directory is its archive, without the targets of links', async () => {
    await using files = await setFiles({}, OWN)
    await files.put('d/a.txt', TEXT)
    await files.put(`d/${'long'.repeat(40)}/b`, 'b')
    await symlink('/etc/passwd', join(files.workdir, 'd/link'))
    execFileSync('mkfifo', [join(files.workdir, 'd/pipe')])
    const url = await files.http.listen()
    for (const path of ['files/d?format=tar.gz', 'files/d/?format=tar.gz', 'files?path=d&format=tar.gz']) {
      const response = await fetch(`${url}${files.base}/${path}`, { headers: { authorization: `Bearer ${KEY}` } })
      expect(response.headers.get('content-type')).toBe('application/gzip')
      expect(response.headers.get('content-disposition')).toBe('attachment; filename="d.tar.gz"')
      const input = Buffer.from(await response.arrayBuffer())
      const names = execFileSync('tar', ['tzf', '-'], { input }).toString().trim().split('\n')
      expect(names).toEqual(['a.txt', 'link', `${'long'.repeat(40)}/`, `${'long'.repeat(40)}/b`])
      expect(execFileSync('tar', ['xzOf', '-', 'a.txt'], { input }).toString()).toBe(TEXT)
      expect(execFileSync('tar', ['tvzf', '-', 'link'], { input }).toString()).toMatch(/^l.* link -> \/etc\/passwd\n$/)
    }
    expectProblem(await files.get('d'), 409, 'not_a_file')
    expectProblem(await files.get('d/a.txt?format=tar.gz'), 409, 'not_a_directory')
    expectProblem(await files.get('none?format=tar.gz'), 404, 'file_not_found')
    expect((await files.http.call('HEAD', `${files.base}/files/d?format=tar.gz`)).status).toBe(200)
  })
})

describe('too much', () => {
  test('is refused as soon as it is announced, or has come', async () => {
    await using files = await setFiles({}, OWN)
    const large = 'x'.repeat(MAX_UPLOAD_BYTES + 1)
    expectProblem(await files.put('a', large), 413, 'body_too_large')
    const parts = [{ filename: 'a', content: large }]
    expectProblem(await files.upload('path=a', parts), 413, 'body_too_large')
    const url = new URL(await files.http.listen())
    const head = `PUT ${files.base}/files/a HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\n`
    const announced = await raw(url, `${head}Content-Length: ${MAX_UPLOAD_BYTES + 1}\r\n\r\nx`)
    expect(announced).toMatch(/^HTTP\/1.1 413 /)
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`
    const streamed = await raw(url, `${head}Transfer-Encoding: chunked\r\n\r\n${chunk.repeat(17)}`)
    expect(streamed).toMatch(/^HTTP\/1.1 413 /)
    expect(await readdir(files.workdir)).toEqual([])
    expect((await files.put('a', 'x'.repeat(MAX_UPLOAD_BYTES))).status).toBe(201)
  })

  test('is not for other routes: their bodies are as they were', async () => {
    await using files = await setFiles()
    const { call } = files.http
    expectProblem(
      await call('POST', `${files.base}/messages`, formOf([]), { 'content-type': FORM_TYPE }),
      415,
      'unsupported_media_type',
    )
    expectProblem(await call('POST', `${files.base}/messages`, 'x'.repeat(70_000)), 413, 'body_too_large')
    expectProblem(await call('POST', `${files.base}/dirs/a`, '{'), 400, 'invalid_request')
  })
})

test('a client that waits for `100 Continue` receives it', async () => {
  await using files = await setFiles({}, OWN)
  const url = new URL(await files.http.listen())
  const request = http.request({
    host: url.hostname,
    port: url.port,
    path: `${files.base}/files/a`,
    method: 'PUT',
    headers: { authorization: `Bearer ${KEY}`, expect: '100-continue', 'content-length': 3 },
  })
  request.flushHeaders()
  await new Promise((resolve) => request.once('continue', resolve))
  request.end('abc')
  const response = await new Promise<http.IncomingMessage>((resolve) => request.once('response', resolve))
  expect(response.resume().statusCode).toBe(201)
})

describe('a file that comes slowly', () => {
  const times = { headersMs: 60_000, checkMs: 50, jsonMs: 300, silenceMs: 300, stallMs: 60_000 }
  const options = { http: { times } }
  const headOf = (base: string, length = 'Content-Length: 10', name = 'a') =>
    `PUT ${base}/files/${name} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\nContent-Type: application/json\r\n${length}\r\n\r\n`

  test('may take its time as long as it comes, also when it calls itself JSON', async () => {
    await using files = await setFiles({}, { http: { times: { ...times, jsonMs: 4000, silenceMs: 8000 } } })
    const url = new URL(await files.http.listen())
    const socket = connect(Number(url.port), url.hostname)
    socket.write(headOf(files.base, 'Transfer-Encoding: chunked'))
    // It takes longer than one that began later, of which nothing comes.
    const silent = { isEnded: false }
    const ended = raw(url, headOf(files.base, undefined, 'silent')).finally(() => (silent.isEnded = true))
    for await (const _ of every(20)) {
      if (silent.isEnded) break
      socket.write('1\r\nx\r\n')
    }
    expect(await ended).toMatch(/^HTTP\/1\.1 408 /)
    socket.write('0\r\n\r\n')
    const [answer] = (await once(socket, 'data')) as [Buffer]
    socket.destroy()
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 201 /)
  })

  test('is ended when nothing of it comes, and leaves nothing', async () => {
    await using files = await setFiles({}, options)
    const url = new URL(await files.http.listen())
    const answer = await raw(url, `${headOf(files.base)}half`)
    expect(answer).toMatch(/^HTTP\/1\.1 408 /)
    await expect.poll(() => readdir(files.workdir)).toEqual([])
    expect(files.http.bench.logged.filter((line) => /"level":"?(error|50)/.test(line))).toEqual([])
  })
})

describe('an upload that breaks off', () => {
  test.each([
    ['a raw body', (base: string) => [`PUT ${base}/files/d/a HTTP/1.1`, 'Content-Length: 500000']],
    ['a chunked one', (base: string) => [`PUT ${base}/files/d/a HTTP/1.1`, 'Transfer-Encoding: chunked']],
    [
      'a form',
      (base: string) => [
        `POST ${base}/files/upload?path=d/ HTTP/1.1`,
        'Content-Length: 500000',
        `Content-Type: ${FORM_TYPE}`,
      ],
    ],
  ])('leaves nothing behind: %s', async (_what, head) => {
    await using files = await setFiles({}, OWN)
    const url = new URL(await files.http.listen())
    const lines = [...head(files.base), 'Host: x', `Authorization: Bearer ${KEY}`]
    const socket = connect(Number(url.port), url.hostname)
    const form = formOf([{ filename: 'a', content: 'x'.repeat(200_000) }]).slice(0, -20)
    const body = lines.some((line) => line.startsWith('Transfer')) ? `186a0\r\n${'x'.repeat(100_000)}\r\n` : form
    socket.write(`${lines.join('\r\n')}\r\n\r\n${body}`)
    await expect.poll(() => readdir(files.workdir)).toEqual([expect.stringMatching(/^\.upload-/)])
    expect((await files.http.call('GET', `${files.base}/files`)).body.items).toEqual([])
    socket.destroy()
    await expect.poll(() => readdir(files.workdir)).toEqual([])
    expect(await files.updates()).toEqual([])
    expect(files.http.bench.logged.filter((line) => /"level":"?(error|50)/.test(line))).toEqual([])
  })

  test('because the conversation is deleted, ends with that', async () => {
    await using files = await setFiles({}, OWN)
    const url = new URL(await files.http.listen())
    const request = http.request({
      host: url.hostname,
      port: url.port,
      path: `${files.base}/files/a`,
      method: 'PUT',
      headers: { authorization: `Bearer ${KEY}` },
    })
    request.write('begun')
    await expect.poll(() => readdir(files.workdir)).toHaveLength(1)
    expect((await files.http.call('DELETE', files.base)).status).toBe(204)
    request.end('the rest')
    const response = await new Promise<http.IncomingMessage>((resolve) => request.once('response', resolve))
    expect(response.statusCode).toBe(410)
    response.resume()
    await expect(readdir(files.workdir)).rejects.toThrow('ENOENT')
  })
})

describe('DELETE', () => {
  test('removes a file, an empty directory, and with `recursive` a full one', async () => {
    await using files = await setFiles()
    await files.put('d/e/f', 'x')
    const remove = (path: string, headers?: Record<string, string>) =>
      files.http.call('DELETE', `${files.base}/files/${path}`, undefined, headers)
    expectProblem(await remove('d'), 409, 'directory_not_empty')
    expectProblem(await remove('d/e/f', { 'if-match': '"x"' }), 412, 'precondition_failed')
    expect((await remove('d/e/f')).status).toBe(204)
    expect((await remove('d/e/')).status).toBe(204)
    await files.put('d/g/h', 'x')
    expect((await remove('d?recursive=true')).status).toBe(204)
    expectProblem(await remove('d'), 404, 'file_not_found')
    expect((await files.updates()).filter(({ action }) => action === 'delete').map(({ path }) => path)).toEqual([
      'd/e/f',
      'd/e',
      'd',
    ])
  })
})

describe('a look', () => {
  test('lists, describes and counts existing files', async () => {
    await using files = await setFiles()
    const { call } = files.http
    await files.put('a/b.txt', 'content')
    expect((await call('GET', `${files.base}/files?path=a`)).body).toMatchObject({
      items: [{ path: 'a/b.txt', name: 'b.txt', type: 'file', size: 7 }],
      next_page_id: null,
    })
    const { headers } = await files.get('a/b.txt')
    expect((await call('GET', `${files.base}/file-info/a/b.txt`)).body).toMatchObject({
      path: 'a/b.txt',
      type: 'file',
      size: 7,
      etag: headers['etag'],
      content_type: 'text/plain; charset=utf-8',
    })
    expect((await call('GET', `${files.base}/file-info/a`)).body).toMatchObject({ type: 'directory', size: 0 })
    expect((await call('GET', `${files.base}/file-count`)).body).toMatchObject({ count: 1, directories: 1 })
    const [first] = (await call('GET', `${files.base}/files?recursive=true&limit=1`)).body.items
    expect(first.path).toBe('a')
  })

  test.each([
    ['files?path=none', 404, 'file_not_found'],
    ['files?path=a', 409, 'not_a_directory'],
    ['files?path=../x', 400, 'unsafe_path'],
    ['files?limit=0', 400, 'invalid_request'],
    ['files?page_id=x', 400, 'invalid_cursor'],
    ['files?format=zip', 400, 'invalid_request'],
    ['files/a?format=zip', 400, 'invalid_request'],
    ['files/none', 404, 'file_not_found'],
    ['file-info/none', 404, 'file_not_found'],
    ['file-search', 400, 'invalid_request'],
    ['file-search?content=', 400, 'invalid_request'],
    ['file-search?content=a%0Ab', 400, 'invalid_request'],
    ['file-search?q=x&path=none', 404, 'file_not_found'],
    ['file-count?path=a', 409, 'not_a_directory'],
  ] as const)('at %s is %i', async (path, status, code) => {
    await using files = await setFiles()
    await files.put('a', '')
    expectProblem(await files.http.call('GET', `${files.base}/${path}`), status, code)
  })

  test('of the server’s own files is refused as everywhere', async () => {
    await using files = await setFiles()
    const { call } = files.http
    expectProblem(await call('GET', `/conversations/${uuid7()}/files`), 404, 'conversation_not_found')
    expectProblem(await call('PATCH', `${files.base}/files/a`), 405, 'method_not_allowed')
    expectProblem(await call('POST', `${files.base}/files/a`), 405, 'method_not_allowed')
    expectProblem(await call('GET', `${files.base}/files`, undefined, { authorization: '' }), 401, 'unauthorized')
    expectProblem(
      await call('PUT', `${files.base}/files/a`, 'x', { authorization: '', 'content-type': 'text/plain' }),
      401,
      'unauthorized',
    )
  })
})

const statusesOf = (answers: readonly { status: number }[]) =>
  answers.map(({ status }) => status).toSorted((a, b) => a - b)

/** What the server says to these bytes, up to the end of its first answer. */
async function raw(url: URL, text: string): Promise<string> {
  const socket = connect(Number(url.port), url.hostname)
  socket.on('error', () => {})
  socket.write(text)
  let answer = ''
  for await (const chunk of socket) {
    answer += String(chunk)
    if (/\r\n\r\n[^]*\}/.test(answer)) break
  }
  return answer
}
