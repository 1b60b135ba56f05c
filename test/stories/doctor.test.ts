/** `agent-server doctor`: what it finds on a machine, and what it says about it. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { Server } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runCommand } from '../support/command.ts'

let home: string
let endpoint: Server
let port: number
let asked: string[] = []

const ENDLESS = 'endless'
function* blanks() {
  for (;;) yield Buffer.alloc(65_536, ' ')
}

/** What the endpoint answers, by the key. */
const ANSWERS: Readonly<Record<string, [status: number, body: string]>> = {
  'Bearer sk-good': [200, JSON.stringify({ data: [{ id: 'small-1' }, { id: 'large-1' }] })],
  'Bearer sk-bad': [401, '{}'],
  'Bearer sk-listless': [404, 'Not found'],
  'Bearer sk-moved': [302, ''],
  'Bearer sk-endless': [200, ENDLESS],
}

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'doctor-'))
  await mkdir(join(home, 'empty'))
  endpoint = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`)
    const [status, body] = ANSWERS[request.headers.authorization ?? ''] ?? [500, '']
    response.writeHead(status, { 'content-type': 'application/json', location: '/elsewhere' })
    if (body === ENDLESS) void pipeline(Readable.from(blanks()), response).catch(() => {})
    else response.end(body)
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => endpoint.once('listening', resolve))
  port = (endpoint.address() as AddressInfo).port
})
afterAll(async () => {
  endpoint.close()
  await rm(home, { recursive: true, force: true })
})

async function doctor(env: Record<string, string>, ...args: string[]) {
  asked = []
  const own = { HOME: home, OPENHANDS_DATA_DIR: join(home, 'data'), OPENHANDS_SERVER_HOST: '127.0.0.1' }
  const { code, stdout } = await runCommand(['doctor', ...args], {
    cwd: home,
    env: { ...own, LLM_MODEL: 'large-1', LLM_BASE_URL: `http://127.0.0.1:${port}/v1`, ...env },
  })
  const lines = stdout.replaceAll(/\n +/g, ' | ').split('\n')
  return { code, stdout, line: (name: string) => lines.find((line) => line.slice(5).startsWith(`${name} `)) ?? '' }
}

test('a key and a model that the endpoint knows are good, and nothing is asked that costs money', async () => {
  const { code, line } = await doctor({ LLM_API_KEY: 'sk-good' })
  expect(line('model')).toBe(`ok   model    127.0.0.1:${port} has large-1; the key is from LLM_API_KEY`)
  expect([code, asked]).toEqual([0, ['GET /v1/models']])
})

test.each([
  ['sk-bad', 1, /^fail .*the key of LLM_API_KEY is refused \(401\) \| Set LLM_API_KEY/],
  ['sk-listless', 0, /^warn .*has no list of models \(404\)/],
  ['sk-moved', 0, /^warn .*has no list of models \(302\)/],
])('an endpoint that answers %s otherwise is told apart, and its answer is not followed elsewhere', async (...row) => {
  const [LLM_API_KEY, exitCode, expected] = row
  const { code, stdout, line } = await doctor({ LLM_API_KEY })
  expect(line('model')).toMatch(expected)
  expect([code, asked]).toEqual([exitCode, ['GET /v1/models']])
  expect(stdout).not.toContain(LLM_API_KEY)
})

test('a model that the endpoint does not list gets the nearest name; one that nobody has set fails', async () => {
  const misspelt = await doctor({ LLM_API_KEY: 'sk-good' }, '--model', 'large-2')
  expect(misspelt.line('model')).toMatch(/^warn .*does not list large-2 \| Did you mean large-1\?$/)
  const none = await doctor({ LLM_MODEL: '', LLM_API_KEY: 'sk-good' })
  expect(none.line('model')).toMatch(/^fail .*no model is set: give --model/)
  expect([none.code, asked]).toEqual([1, []])
})

test('an endless list of models is not read to its end', async () => {
  const { code, line } = await doctor({ LLM_API_KEY: 'sk-endless' })
  expect(line('model')).toMatch(/^fail .*its list of models is larger than 8 MiB/)
  expect(code).toBe(1)
})

test('a password in the URL of the endpoint is not shown', async () => {
  const url = `http://ada:secret-word@127.0.0.1:${port}/v1`
  const { code, stdout, line } = await doctor({ LLM_API_KEY: 'sk-good' }, '--base-url', url)
  expect(line('model')).toMatch(/^fail .*contains a user name or password \| Leave them out/)
  expect(stdout).not.toContain('secret-word')
  expect([code, asked]).toEqual([1, []])
})

test('an endpoint that nobody listens for, and a port that another program has, are named', async () => {
  const { code, line } = await doctor({ LLM_BASE_URL: 'http://127.0.0.1:1/v1', OPENHANDS_SERVER_PORT: String(port) })
  expect(line('model')).toMatch(/^fail .*127\.0\.0\.1:1 does not answer/)
  expect(line('port')).toMatch(new RegExp(`^warn .*127\\.0\\.0\\.1:${port} is used by another program \\| .*--port`))
  expect(code).toBe(1)
})

test('what is not installed is named, with what it is for; programs that agents can write into the project do not count', async () => {
  const writable = join(home, '.venv/bin')
  await mkdir(writable, { recursive: true })
  for (const name of ['git', 'rg', 'bwrap']) await writeFile(join(writable, name), '#!/bin/sh\n', { mode: 0o755 })
  const { line } = await doctor({ LLM_API_KEY: 'sk-good', PATH: [join(home, 'empty'), writable].join(':') })
  expect(line('git')).toMatch(/^warn .*not installed \| .*apt install git/)
  expect(line('ripgrep')).toMatch(/^warn .*not installed/)
  expect(line('sandbox')).toMatch(/^warn .*commands have the rights of/)
  expect(line('data')).toBe(`ok   data     ${join(home, 'data')}`)
})

test('for git without a name for commits, doctor says how to set one', async () => {
  const { line } = await doctor({ LLM_API_KEY: 'sk-good', GIT_CONFIG_NOSYSTEM: '1' })
  expect(line('git')).toMatch(/^warn .*no name or address for commits \| Run: git config/)
  const named = { GIT_AUTHOR_NAME: 'Some One', GIT_AUTHOR_EMAIL: 'one@example.com' }
  expect((await doctor({ LLM_API_KEY: 'sk-good', ...named })).line('git')).toContain(
    'commit as Some One <one@example.com>',
  )
})
