/** The SDK of the Agent Client Protocol: its clients of version 1 and 2, over standard input and the WebSocket. */
import type { Stream } from '@agentclientprotocol/sdk'
import { createWebSocketStream } from '@agentclientprotocol/sdk/experimental/ws-client'
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { WebSocket } from 'ws'
import { Editor } from '../../../test/cli/acp/support/editor.ts'
import { EditorV2 } from '../../../test/cli/acp/support/editor-v2.ts'
import { shownInV2 } from '../../../test/cli/acp/support/shown-v2.ts'
import * as cases from './cases.ts'

/** What both versions can do in one new session. */
type Session = AsyncDisposable & {
  /** Resolves to the reason why the agent has stopped. */
  readonly prompt: (text: string) => Promise<string | null | undefined>
  readonly said: () => string
  /** The titles and states of the calls. */
  readonly calls: () => readonly { readonly title: string; readonly status: string }[]
  readonly cancel: () => Promise<void>
  /** Answers all permission requests with this option, and keeps their titles. */
  readonly choose: (optionId: 'allow_once' | 'reject_once') => readonly string[]
}
type Open = (key?: string) => Promise<Session>

const env = (key: string) => ({ OPENHANDS_MASTER_KEY: key })
const args = ['--server', cases.URL_OF_SERVER]
const newDirectory = () => join(cases.HOME_OF_SERVER, crypto.randomUUID())
const overSocket = (key: string): Stream =>
  createWebSocketStream(`${cases.URL_OF_SERVER.replace('http', 'ws')}/acp`, {
    headers: { authorization: `Bearer ${key}` },
    WebSocket,
  })

async function firstVersion(editor: Editor): Promise<Session> {
  const cwd = newDirectory()
  const { sessionId } = await editor.agent.request('session/new', { cwd, mcpServers: [] })
  return {
    prompt: async (text) => (await editor.prompt(sessionId, text)).stopReason,
    said: () => editor.said(sessionId),
    calls: () => {
      const calls = new Map<string, { title: string; status: string }>()
      for (const update of editor.of(sessionId)) {
        if (update.sessionUpdate !== 'tool_call' && update.sessionUpdate !== 'tool_call_update') continue
        const { title, status } = { ...calls.get(update.toolCallId), ...update }
        calls.set(update.toolCallId, { title: title ?? '', status: status ?? '' })
      }
      return [...calls.values()]
    },
    cancel: () => editor.agent.notify('session/cancel', { sessionId }),
    choose(optionId) {
      const titles: string[] = []
      editor.onPermission = async ({ toolCall }) => {
        titles.push(toolCall.title ?? '')
        return { outcome: { outcome: 'selected', optionId } }
      }
      return titles
    },
    [Symbol.asyncDispose]: () => editor.kill(),
  }
}

async function secondVersion(editor: EditorV2): Promise<Session> {
  const sessionId = await editor.begin(newDirectory())
  const shown = () => shownInV2(editor.of(sessionId))
  return {
    prompt: async (text) => {
      const end = await editor.prompt(sessionId, text)
      return 'stopReason' in end ? String(end.stopReason) : end.state
    },
    said: () =>
      shown()
        .flatMap(({ kind, text }) => (kind === 'message' ? [text ?? ''] : []))
        .join(''),
    calls: () =>
      shown().flatMap(({ kind, title, status }) =>
        kind === 'call' ? [{ title: String(title), status: String(status) }] : [],
      ),
    cancel: () => editor.agent.notify('session/cancel', { sessionId }),
    choose(optionId) {
      const titles: string[] = []
      editor.onPermission = async (asked) => {
        titles.push(JSON.stringify(asked))
        return { outcome: { outcome: 'selected', optionId } }
      }
      return titles
    },
    [Symbol.asyncDispose]: () => editor.kill(),
  }
}

async function decide(open: Open, optionId: 'allow_once' | 'reject_once'): Promise<string> {
  await using session = await open()
  const asked = session.choose(optionId)
  assert.equal(await session.prompt(cases.COMPUTE), 'end_turn')
  assert.equal(asked.length, 1)
  assert.ok(asked[0]?.includes(cases.COMMAND))
  assert.equal(session.calls()[0]?.status, optionId === 'allow_once' ? 'completed' : 'failed')
  return session.said().replace('I compute.', '')
}

function casesOf(name: string, open: Open): Record<string, () => Promise<void>> {
  const all: Record<string, () => Promise<void>> = {
    async text() {
      await using session = await open()
      assert.equal(await session.prompt(cases.SLOWLY), 'end_turn')
      assert.equal(session.said(), cases.WORDS)
    },
    async tool() {
      await using session = await open()
      assert.equal(await session.prompt(cases.PLAN), 'end_turn')
      assert.match(session.said(), /^I plan\.Read: /)
    },
    async allow() {
      assert.match(await decide(open, 'allow_once'), cases.RESULT)
    },
    async deny() {
      cases.assertDenied(await decide(open, 'reject_once'))
    },
    async cancel() {
      await using session = await open()
      const prompt = session.prompt(cases.ENDLESS)
      await cases.eventually(() => session.said().includes('word word'))
      await session.cancel()
      assert.equal(await prompt, 'cancelled')
      assert.equal(await session.prompt(cases.HELLO), 'end_turn')
      assert.ok(session.said().endsWith(cases.GREETING))
    },
    async 'cancel while a call waits'() {
      await using session = await open()
      const prompt = session.prompt(cases.COMPUTE)
      await cases.eventually(() => session.calls().length > 0)
      await session.cancel()
      assert.equal(await prompt, 'cancelled')
      // Version 1 has no word for it.
      const statuses = session.calls().map(({ status }) => status)
      assert.deepEqual(statuses, [name.startsWith('version 1') ? 'failed' : 'cancelled'])
      assert.equal(await session.prompt(cases.HELLO), 'end_turn')
    },
  }
  return Object.fromEntries(Object.entries(all).map(([each, run]) => [`${name}: ${each}`, run]))
}

const refused = async (open: Open, error: object | RegExp) => await assert.rejects(open(cases.WRONG_KEY), error)

const OPENS = {
  'version 1': async (key = cases.KEY_OF_SERVER) =>
    await firstVersion(await Editor.start({ args, env: env(key), cwd: cases.HOME_OF_SERVER })),
  'version 2': async (key = cases.KEY_OF_SERVER) =>
    await secondVersion(await EditorV2.start({ args, env: env(key), cwd: cases.HOME_OF_SERVER })),
  'version 1, WebSocket': async (key = cases.KEY_OF_SERVER) => await firstVersion(await Editor.over(overSocket(key))),
  'version 2, WebSocket': async (key = cases.KEY_OF_SERVER) =>
    await secondVersion(await EditorV2.over(overSocket(key))),
} satisfies Record<string, Open>

await cases.runCases({
  ...Object.assign({}, ...Object.entries(OPENS).map(([name, open]) => casesOf(name, open))),
  'version 1: wrong key': () => refused(OPENS['version 1'], { code: -32_000 }),
  'version 2: wrong key': () => refused(OPENS['version 2'], { code: -32_000 }),
  'version 1, WebSocket: wrong key': () => refused(OPENS['version 1, WebSocket'], /./),
  'version 2, WebSocket: wrong key': () => refused(OPENS['version 2, WebSocket'], /./),
})
