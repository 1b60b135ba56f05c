/**
 * A data directory of an older version, opened by this one. `older-data.json` has its files as the version before
 * permission modes wrote them, until it was killed: one conversation waits for an approval and has an undelivered
 * callback, the other one was in the middle of a command.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import { startScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import { codeOf } from '../../src/lib/error-code.ts'
import type { Receiver } from '../support/receiver.ts'
import { firstSeqsOf, startReceiver } from '../support/receiver.ts'
import type { TestServer } from '../support/server.ts'
import { startServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import { decisionsFor } from '../support/answering-over-http.ts'
import { answer, requestsOf } from './requests.ts'

const ASKS = '018f0000-0000-7000-8000-00000000000a'
const KILLED = '018f0000-0000-7000-8000-00000000000b'
const RECORDED_AT = Date.parse('2026-11-22T17:08:59Z')
/** The recorded credentials are bound to the origin of the model. No other test uses this port, but another run of this one. */
const MODEL_PORT = 9652
const HOOK_URL = 'http://127.0.0.1:18753/hook'
const CALLBACK_SECRET = 'whsec_xoc1J5MyLDm66+pbQHz3ORqLm7vQHCA7yve9ytEYfrQ='

let server: TestServer
let model: ScriptedModel
let receiver: Receiver
let recorded: Record<string, string | { base64: string }>

beforeAll(async () => {
  model = await until('a free port', () =>
    startScriptedModel(() => ({ text: 'Printed.' }), { port: MODEL_PORT }).catch((error: unknown) => {
      if (codeOf(error) === 'EADDRINUSE') return false
      throw error
    }),
  )
  receiver = await startReceiver()
  receiver.secret = CALLBACK_SECRET
  recorded = JSON.parse(await readFile(join(import.meta.dirname, 'older-data.json'), 'utf8'))
  server = await startServer({ env: { OPENHANDS_CALLBACK_ALLOW: '127.0.0.1' }, prepare: writeRecorded })
})
afterAll(async () => {
  await server?.[Symbol.asyncDispose]()
  await receiver?.[Symbol.asyncDispose]()
  await model?.close()
})

/** Writes the files as if they had been recorded just now, in this directory and with this receiver. */
async function writeRecorded(dataDir: string): Promise<void> {
  const age = Date.now() - RECORDED_AT
  for (const [path, content] of Object.entries(recorded)) {
    const file = join(dataDir, path)
    await mkdir(dirname(file), { recursive: true, mode: 0o700 })
    if (typeof content !== 'string') {
      await writeFile(file, Buffer.from(content.base64, 'base64'), { mode: 0o600 })
      continue
    }
    const text = content
      .replaceAll('<data>', dataDir)
      .replaceAll(HOOK_URL, receiver.url)
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, (time) => new Date(Date.parse(time) + age).toISOString())
    await writeFile(file, text, { mode: 0o600 })
    recorded[path] = text
  }
}

const recordedEvents = (id: string) =>
  (recorded[`sessions/${id}/events.jsonl`] as string)
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
const events = async (id: string, query = '') =>
  (await server.call('GET', `/conversations/${id}/events?limit=1000&${query}`)).body.items

/** As this version shows it: what asked for a permission is a request of this kind. */
function shown({ tool_uses, ...event }: { type: string; tool_uses: { tool_use_id: string }[] }): object {
  if (event.type !== 'PermissionRequest') return event
  const tool_use_ids = tool_uses.map((use) => use.tool_use_id)
  return { ...event, type: 'RequestOpened', version: 3, kind: 'permission', tool_use_ids, payload: { tool_uses } }
}

test('every recorded event is there, and due deliveries are sent', async () => {
  for (const id of [ASKS, KILLED]) {
    const all = recordedEvents(id).map(shown)
    expect((await events(id)).slice(0, all.length)).toEqual(all)
  }
  await receiver.untilReceived((all) => firstSeqsOf(all).length >= 7)
  expect(firstSeqsOf(receiver.received).slice(0, 7)).toEqual([3, 4, 5, 6, 7, 8, 9])
})

test('the call that was running is reported as interrupted and does not run again', async () => {
  expect(await events(KILLED, 'types=ToolResult')).toMatchObject([
    { error_type: 'interrupted', tool_use_id: 'call_1_1' },
  ])
  expect((await server.call('GET', `/conversations/${KILLED}`)).body).toMatchObject({
    title: 'Killed',
    status: 'paused',
  })
  expect(await readFile(join(server.dataDir, 'work', KILLED, 'ran.txt'), 'utf8')).toBe('once\n')
})

test('idempotency keys return the recorded answers', async () => {
  const llm_config = { model: 'scripted', base_url: model.baseUrl, api_key: 'recorded-model-key-1' }
  const secrets = { TOKEN: 'recorded-secret-1' }
  const fields = { id: ASKS, title: 'Asks', system_prompt: 'Be brief.', tools: ['Bash'], confirmation_mode: true }
  const again = (path: string, key: string, body: object) =>
    server.call('POST', `/conversations${path}`, body, { 'idempotency-key': key })

  expect(await again('', 'create-1', { ...fields, llm_config, secrets })).toMatchObject({
    status: 201,
    body: { id: ASKS },
  })
  expect(await again(`/${ASKS}/callbacks`, 'callback-1', { url: HOOK_URL })).toMatchObject({
    status: 201,
    body: { secret: CALLBACK_SECRET },
  })
  const command = 'export KEEP=kept; f() { echo fun; }; echo one; echo two >&2; (exit 3)'
  expect(await again(`/${ASKS}/commands`, 'command-1', { command })).toMatchObject({
    status: 200,
    body: { stdout: 'one\n', stderr: 'two\n', exit_code: 3 },
  })
  const message = { role: 'user', content: 'Print it.' }
  expect(await again(`/${ASKS}/messages`, 'message-1', { message, run: true })).toMatchObject({
    status: 202,
    body: { seq: 4 },
  })
  expect((await again(`/${ASKS}/messages`, 'message-1', { message })).body.error).toBe('idempotency_mismatch')
})

test('the shell has its exported variables and functions, and the secrets of the conversation', async () => {
  const run = async (command: string) =>
    (await server.call('POST', `/conversations/${ASKS}/commands`, { command })).body.stdout
  expect(await run('echo $KEEP; f; printenv TOKEN | rev')).toBe('kept\nfun\n1-terces-dedrocer\n')
  expect(await run('KEEP=changed; echo $TOKEN')).toBe('<secret:TOKEN>\n')
  expect(await run('echo $KEEP')).toBe('changed\n')
})

test('the waiting call is approved by its recorded hash, runs, and the run ends', async () => {
  const { request_id, tool_uses } = recordedEvents(ASKS).find(({ type }) => type === 'PermissionRequest')
  expect(await requestsOf(server.call, ASKS, 'permission')).toMatchObject([{ request_id, payload: { tool_uses } }])
  const allow = decisionsFor({ payload: { tool_uses } }, { behavior: 'allow' })
  expect(await answer(server.call, ASKS, request_id, allow)).toMatchObject({ status: 200, body: { pending: 0 } })
  await expect.poll(() => events(ASKS, 'types=Result')).toMatchObject([{ final_text: 'Printed.' }])
  expect(await events(ASKS, 'types=ToolResult')).toMatchObject([{ output: { stdout: '1-terces-dedrocer\n' } }])
  expect(model.requests.at(-1)!.headers.authorization).toBe('Bearer recorded-model-key-1')
})
