/** `agent-server acp --server`: an editor beside other clients of the same server, with the rights of its key. */
import type { RequestPermissionResponse } from '@agentclientprotocol/sdk'
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createClient } from '../../../src/client/client.ts'
import type { ScriptedModel } from '../../../src/llm/scripted/scripted-model.ts'
import { startScriptedModel } from '../../../src/llm/scripted/scripted-model.ts'
import type { TestServer } from '../../support/server.ts'
import { KEY } from '../../support/server.ts'
import { startServerHere } from '../../support/server-here.ts'
import { Editor } from './support/editor.ts'

const bash = (command: string) => [{ name: 'Bash', arguments: { command } }]

let home: string
let model: ScriptedModel
let server: TestServer
const clientWith = (apiKey: string) => createClient({ baseUrl: server.url, apiKey })
const start = async (key: string) =>
  await Editor.start({ args: ['--server', server.url], env: { OPENHANDS_MASTER_KEY: key }, cwd: home })
const begin = async (by: Editor) => {
  const { sessionId } = await by.agent.request('session/new', { cwd: join(home, 'work'), mcpServers: [] })
  return sessionId
}

beforeAll(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), 'agent-server-acp-')))
  model = await startScriptedModel({
    replies: [
      { when: 'hello', turns: [{ text: 'Hello there.' }] },
      { when: 'write', turns: [{ text: 'I write.', calls: bash('echo hi >> out.txt') }, { text: 'It is written.' }] },
    ],
  })
  const llm = { LLM_MODEL: 'scripted', LLM_BASE_URL: model.baseUrl, LLM_API_KEY: 'scripted-model-key' }
  server = await startServerHere({ ...llm, OPENHANDS_WORKDIR_BASE: home })
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await model.close()
  await rm(home, { recursive: true, force: true })
})

test('what another client decides is withdrawn, and the agent works on when the editor is closed', async () => {
  await using editor = await start(KEY)
  const id = await begin(editor)
  const conversation = clientWith(KEY).conversation(id)
  const prompt = editor.prompt(id, 'write')
  await editor.until('the request', () => editor.permissions.length === 1)
  const [request] = (await conversation.requests.list({ kinds: ['permission'] })).items
  if (request?.kind !== 'permission') throw new Error('nothing waits')
  await conversation.requests.allow(request)
  expect(await prompt).toEqual({ stopReason: 'end_turn' })
  expect(editor.permissions[0]!.signal.aborted).toBe(true)

  void editor.prompt(id, 'write').catch(() => {}) // the editor leaves
  await editor.until('the request', () => editor.permissions.length === 2)
  expect(await editor.leave()).toBe(0)
  expect((await conversation.get()).status).toBe('waiting_for_confirmation')
})

test.each([true, false])(
  'a prompt whose request a message of another client closes ends with what follows: run %s',
  async (run) => {
    await using editor = await start(KEY)
    const id = await begin(editor)
    const prompt = editor.prompt(id, 'write')
    await editor.until('the request', () => editor.permissions.length === 1)
    const message = { role: 'user' as const, content: [{ type: 'text' as const, text: 'hello' }] }
    await clientWith(KEY).api.call('postMessage', { params: { id }, body: { message, run } })
    expect(await prompt).toEqual({ stopReason: 'end_turn' })
    expect(editor.said(id).endsWith(run ? 'Hello there.' : 'I write.')).toBe(true)
  },
)

test('a conversation of another client is listed, loaded, followed and decided in the editor', async () => {
  const client = clientWith(KEY)
  const { id, workdir } = await client.conversations.create({
    permission_mode: 'default',
    initial_message: 'hello',
    run: true,
    wait: true,
  })
  await using editor = await start(KEY)
  const { sessions } = await editor.agent.request('session/list', { cwd: workdir })
  expect(sessions).toMatchObject([{ sessionId: id, title: 'hello' }])
  await editor.load(id, workdir)
  expect(editor.said(id)).toBe('Hello there.')
  editor.onPermission = async () => ({ outcome: { outcome: 'selected', optionId: 'allow_once' } })
  await client.conversation(id).send('write')
  await editor.until('the answer', () => editor.said(id).endsWith('It is written.'))
  expect(editor.permissions).toHaveLength(1)
})

test('a key without the scope approve decides nothing, and a wrong key is an error of the protocol', async () => {
  const { key } = await clientWith(KEY).keys.create({ name: 'editor', scopes: ['read', 'write'] })
  await using editor = await start(key)
  const id = await begin(editor)
  editor.onPermission = async (): Promise<RequestPermissionResponse> => ({
    outcome: { outcome: 'selected', optionId: 'allow_once' },
  })
  const prompt = editor.prompt(id, 'write')
  await editor.until('the refusal', () => editor.said(id).includes('not accepted'))
  await editor.agent.notify('session/cancel', { sessionId: id })
  expect(await prompt).toEqual({ stopReason: 'cancelled' })
  const { items } = await clientWith(KEY)
    .conversation(id)
    .listEvents({ types: ['ToolResult'] })
  expect(items).toMatchObject([{ is_error: true }])
  await using wrong = await start('wrong-key-0123456789')
  await expect(begin(wrong)).rejects.toMatchObject({ code: -32_000 })
})
