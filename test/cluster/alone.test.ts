/** What a server loads that has no other instances. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import { KEY, freePort } from '../support/server.ts'
import { subscribe } from '../support/stream.ts'
import { until } from '../support/until.ts'

const REPORT = new URL('../sdk/children/report-modules.ts', import.meta.url).href
const MAIN = join(import.meta.dirname, '../../src/main.ts')

test('a server with files loads no code for other instances, and not for streams and runs either', async () => {
  const model = await startScriptedModel({ replies: [{ turns: [{ text: 'Done.' }] }] })
  const home = await mkdtemp(join(tmpdir(), 'agent-server-alone-'))
  const port = await freePort()
  const env = { PATH: process.env['PATH'], HOME: home, OPENHANDS_DATA_DIR: join(home, 'data') }
  const settings = { OPENHANDS_MASTER_KEY: KEY, OPENHANDS_SERVER_PORT: String(port) }
  const server = spawn(process.execPath, ['--import', REPORT, MAIN, 'serve'], { env: { ...env, ...settings } })
  let output = ''
  server.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  server.stderr.resume()
  const closed = once(server, 'close')
  try {
    const url = `http://127.0.0.1:${port}`
    const isReady = async () => (await fetch(`${url}/ready`).catch(() => undefined))?.status === 200
    await until('the start of the server', isReady)
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
    const llm_config = { model: 'scripted', base_url: model.baseUrl, api_key: 'scripted-model-key' }
    const body = JSON.stringify({ llm_config })
    const created = await fetch(`${url}/conversations`, { method: 'POST', headers, body })
    const { id } = (await created.json()) as { id: string }
    const stream = await subscribe(url, `/conversations/${id}/events/stream`)
    const run = await fetch(`${url}/conversations/${id}/run`, { method: 'POST', headers, body: '{"wait":true}' })
    expect(run.status).toBe(200)
    await run.text()
    stream.close()
    server.kill('SIGTERM')
    await closed
  } finally {
    server.kill('SIGKILL')
    await model.close()
    await rm(home, { recursive: true, force: true, maxRetries: 3 })
  }
  const [, list = '[]'] = /^loaded (.*)$/m.exec(output) ?? []
  const loaded = JSON.parse(list) as string[]
  expect(loaded.some((url) => url.endsWith('/src/http/routes/streams/event-stream.ts'))).toBe(true)
  expect(
    loaded.filter((url) => /\/src\/(cluster|http\/remote|storage\/postgres)\/|\/node_modules\/pg\//.test(url)),
  ).toEqual([])
})
