/** What is on the machine after a server has ended, in each way it can end: the data of conversations, and nothing else. */
import { connect } from 'node:net'
import { readdir, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { KEY, startServer } from '../support/server.ts'
import type { TestServer } from '../support/server.ts'

async function namesIn(directory: string): Promise<string[]> {
  const names: string[] = await readdir(directory, { recursive: true }).catch(() => [])
  return names.sort()
}

/** Longer ago than any start takes. */
async function writeLongAgo(path: string): Promise<void> {
  await writeFile(path, HALF)
  const time = Date.now() / 1000 - 3600
  await utimes(path, time, time)
}

/** Sends the head and a part of the body of an upload. */
function beginUpload({ url }: TestServer, path: string) {
  const { hostname, port } = new URL(url)
  const head = [`PUT ${path} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${KEY}`, 'Content-Length: 100000']
  const socket = connect(Number(port), hostname).on('error', () => {})
  socket.write(`${head.join('\r\n')}\r\n\r\n${'x'.repeat(1000)}`)
}

const [HALF, DRAFT] = ['half', 'meta.json.0123456789ab.new']

test('what a killed server was doing is removed by the next start, without a request', async () => {
  await using server = await startServer({ env: { OPENHANDS_ISOLATION: 'none' } })
  const { dataDir, home, call } = server
  const { id, workdir } = (await call('POST', '/conversations', { llm_config: { model: 'm' } })).body
  const own = join(dataDir, 'sessions', id)
  const run = (body: object) => call('POST', `/conversations/${id}/commands`, body)
  expect((await run({ command: 'export A=1; (sleep 1000 &)', session_id: 'kept' })).body).toMatchObject({
    exit_code: 0,
  })
  expect((await run({ command: 'sleep 1000', background: true })).status).toBe(202)
  beginUpload(server, `/conversations/${id}/files/big`)
  await expect.poll(() => namesIn(workdir)).toEqual([expect.stringMatching(/^\.upload-/)])
  // It is killed between other steps, too, which take too short a time to wait for them.
  for (const directory of [own, join(own, 'commands')]) await writeFile(join(directory, DRAFT), HALF)
  await writeFile(join(own, 'outputs', 'stdout-0.txt.new'), HALF)
  for (const name of ['keys.json.new', '.ready']) await writeFile(join(dataDir, name), HALF)
  await writeLongAgo(join(dataDir, 'master-key.0123456789ab.new'))
  await server.stop('SIGKILL')
  await writeFile(join(dataDir, 'hidden-files.0123456789ab.new'), HALF)
  await server.restart()
  await expect.poll(() => namesIn(join(dataDir, 'unfinished'))).toEqual([])
  expect(await namesIn(workdir)).toEqual([])
  expect(await namesIn(join(own, 'shells'))).toEqual([])
  expect(await namesIn(join(own, 'outputs'))).toEqual([])
  expect(await namesIn(own)).not.toContain(DRAFT)
  expect(await namesIn(join(own, 'commands'))).not.toContain(DRAFT)
  expect((await readdir(dataDir)).filter((name) => /[.](new|ready)$/.test(name))).toEqual([
    'hidden-files.0123456789ab.new', // a program that starts at the same time may be writing it
  ])
  expect(await readdir(home)).toEqual(['data'])
  expect(await call('GET', `/conversations/${id}`)).toMatchObject({ status: 200 })
})
