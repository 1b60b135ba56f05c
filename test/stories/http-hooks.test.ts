/** HTTP hooks and the configuration of hooks: signatures, addresses, hostile receivers, secrets and scopes. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createWebhookSecret } from '../../src/security/webhook-signature.ts'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import type { Answering, Receiver } from '../support/receiver.ts'
import { startReceiver } from '../support/receiver.ts'

let stage: Stage
let receiver: Receiver
const secret = createWebhookSecret()

beforeAll(async () => {
  stage = await setStage(({ body }) => (body.messages.at(-1)?.role === 'tool' ? { text: 'Done.' } : bash('echo ran')), {
    env: { OPENHANDS_CALLBACK_ALLOW: '127.0.0.1' },
  })
  receiver = await startReceiver()
})
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
  await receiver[Symbol.asyncDispose]()
})

const call = (...args: Parameters<Stage['server']['call']>) => stage.server.call(...args)
const http = (more: object = {}) => ({ type: 'http', url: receiver.url, ...more })
const pre = (hook: object) => ({ PreToolUse: [{ hooks: [hook] }] })
const typed = (events: readonly any[], type: string) => events.filter((event) => event.type === type) // eslint-disable-line typescript/no-explicit-any

async function runWith(hook: object, answer: Answering) {
  receiver.answer = answer
  const events = await stage.say(await stage.create({ hooks: pre(hook) }), 'go')
  return { hooks: typed(events, 'HookEvent'), results: typed(events, 'ToolResult') }
}

const json =
  (body: unknown): Answering =>
  (_, response) =>
    void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))

describe('an HTTP hook', () => {
  test('gets the payload, signed as callbacks are, with its headers, and its answer decides', async () => {
    receiver.secret = secret
    const decision = { hookEventName: 'PreToolUse', permissionDecision: 'deny', permissionDecisionReason: 'not now' }
    const before = receiver.received.length
    const hook = http({ secret, headers: { 'X-Token': 'a-token-of-the-receiver' } })
    const { hooks, results } = await runWith(hook, json({ hookSpecificOutput: decision }))
    receiver.secret = undefined
    expect(hooks).toMatchObject([{ name: receiver.url, action: 'block', message: 'not now' }])
    expect(results).toMatchObject([{ error_type: 'denied', output: expect.stringContaining('not now') }])
    const [received] = receiver.received.slice(before)
    expect(received!.headers).toMatchObject({
      'x-token': 'a-token-of-the-receiver',
      'content-type': 'application/json',
    })
    expect(received!.body).toMatchObject({
      hook_event_name: 'PreToolUse',
      tool_name: 'Bash',
      tool_input: { command: 'echo ran' },
    })
  })

  test.each<[string, Answering, string]>([
    ['answers 500', () => 500, 'status 500'],
    [
      'redirects to an internal address',
      (_, response) => void response.writeHead(307, { location: 'http://169.254.169.254/latest' }).end(),
      'status 307',
    ],
    ['answers 10 MB', (_, response) => void response.end(`{"reason": "${'x'.repeat(10_000_000)}"}`), 'longer than'],
    ['answers something like JSON', (_, response) => void response.end('{nothing'), 'not valid JSON'],
    ['cuts the connection', (_, response) => void response.destroy(), 'other side closed'],
    ['never answers', () => undefined, 'did not answer within 0.5 s'],
    [
      'dribbles bytes',
      (_, response) => {
        const timer = setInterval(() => response.write(' '), 50)
        response.on('close', () => clearInterval(timer))
      },
      'did not answer within 0.5 s',
    ],
  ])('that %s blocks the call, unless it says otherwise', async (_, answer, why) => {
    // Only those that are to reach it have a short limit.
    const timeout = why.includes('did not answer') ? 0.5 : 60
    const blocked = await runWith(http({ timeout }), answer)
    expect(blocked.hooks).toMatchObject([{ action: 'error', message: expect.stringContaining(why) }])
    expect(blocked.results).toMatchObject([{ error_type: 'denied' }])
    const ignored = await runWith(http({ timeout, on_failure: 'continue' }), answer)
    expect(ignored.results).toMatchObject([{ is_error: false }])
  })

  test('that answers without a body lets the call run', async () => {
    expect((await runWith(http(), () => 204)).results).toMatchObject([{ is_error: false }])
  })

  test('is the approver of the mode callback', async () => {
    const answer = { hookSpecificOutput: { hookEventName: 'PermissionRequest', decision: { behavior: 'allow' } } }
    receiver.answer = json(answer)
    const hooks = { PermissionRequest: [{ hooks: [http({ secret })] }] }
    const fields = { permission_mode: 'callback', hooks, permission_rules: { ask: ['Bash(echo:*)'] } }
    const events = await stage.say(await stage.create(fields), 'go')
    expect(typed(events, 'ToolResult')).toMatchObject([{ is_error: false }])
    expect(typed(events, 'RequestAnswered')).toMatchObject([{ kind: 'permission', answered_by: 'hook' }])
  })

  test('learns of the end of a conversation that has run, also when it is slow to answer', async () => {
    const hooks = { SessionEnd: [{ hooks: [http({ timeout: 600 })] }] }
    const [id, unused] = [await stage.create({ hooks }), await stage.create({ hooks })]
    receiver.answer = () => 204
    await stage.say(id, 'go')
    receiver.answer = () => undefined
    for (const each of [id, unused]) expect((await call('DELETE', `/conversations/${each}`)).status).toBe(204)
    const ended = receiver.received.filter(({ body }) => Object(body).hook_event_name === 'SessionEnd')
    expect(ended.map(({ body }) => body)).toMatchObject([{ session_id: id, reason: 'other' }])
  })

  test('must not have a private address', async () => {
    for (const url of [
      'http://169.254.169.254/latest/meta-data',
      'http://10.0.0.1/',
      'http://[::1]/',
      'http://192.168.1.1/',
    ]) {
      const hooks = pre({ type: 'http', url })
      const refused = await call('POST', '/conversations', { llm_config: { model: 'x' }, hooks })
      expect([url, refused.status, refused.body.error]).toEqual([url, 400, 'callback_address_refused'])
      expect(refused.body.message).toContain('hooks.PreToolUse.0.hooks.0.url')
    }
  })
})

describe('the configuration', () => {
  test('is shown without secrets, which no file, event or answer has in clear', async () => {
    const hooks = pre(http({ secret, headers: { Authorization: 'Bearer token-of-the-hook' } }))
    const id = await stage.create({ hooks })
    const { body } = await call('GET', `/conversations/${id}`)
    expect(body.hooks).toEqual(pre(http({ secret: '**********', headers: { authorization: '**********' } })))
    const shown = JSON.stringify([
      body,
      await stage.events(id),
      (await call('GET', `/conversations/${id}/agent-info`)).body,
    ])
    expect(shown).not.toContain(secret)
    expect(shown).not.toContain('token-of-the-hook')
    expect((await call('GET', `/conversations/${id}/agent-info`)).body.hooks).toEqual(['PreToolUse'])
  })

  test('a masked secret that is sent back stays, also after a restart and in a fork; elsewhere it is refused', async () => {
    const id = await stage.create({ hooks: pre(http({ secret })) })
    const { hooks } = (await call('GET', `/conversations/${id}`)).body
    expect((await call('PUT', `/conversations/${id}/config`, { hooks })).status).toBe(200)
    await stage.server.restart('SIGKILL')
    const fork = (await call('POST', `/conversations/${id}/fork`, {})).body.id
    receiver.secret = secret
    receiver.answer = () => 204
    for (const each of [id, fork])
      expect(typed(await stage.say(each, 'go'), 'ToolResult')).toMatchObject([{ is_error: false }])
    receiver.secret = undefined
    const elsewhere = pre({ ...http({ secret: '**********' }), url: `${receiver.url}/other` })
    expect((await call('PUT', `/conversations/${id}/config`, { hooks: elsewhere })).body).toMatchObject({
      error: 'invalid_request',
      message: expect.stringContaining('hooks.PreToolUse.0.hooks.0'),
    })
  })

  test('can be removed, and changed while a run works', async () => {
    const id = await stage.create({ hooks: pre({ type: 'command', command: 'exit 2' }) })
    expect(typed(await stage.say(id, 'go'), 'ToolResult')).toMatchObject([{ error_type: 'denied' }])
    await call('PUT', `/conversations/${id}/config`, { hooks: {} })
    const events = await stage.say(id, 'go')
    expect(typed(events, 'ToolResult')).toMatchObject([{ is_error: false }])
    expect(typed(events, 'HookEvent')).toEqual([])
  })

  test('warns of requests that are not signed', async () => {
    const id = await stage.create()
    const { body } = await call('PUT', `/conversations/${id}/config`, { hooks: pre(http()) })
    expect(body.warnings).toEqual(['hooks.PreToolUse.0.hooks.0 has no secret: its requests are not signed'])
  })

  test.each([
    [{ PreTool: [] }, 'body.hooks: has an unknown field; the fields are SessionStart'],
    [pre({ type: 'prompt', prompt: 'x' }), 'body.hooks.PreToolUse.0.hooks.0.type: must be command or http'],
    [pre({ type: 'command', command: 'x', async: true }), 'body.hooks.PreToolUse.0.hooks.0: has an unknown field'],
    [pre({ type: 'command', command: 'x', timeout: 601 }), 'body.hooks.PreToolUse.0.hooks.0.timeout'],
    [{ Stop: [{ matcher: '(a+)+$', hooks: [{ type: 'command', command: 'x' }] }] }, 'body.hooks.Stop.0.matcher'],
    [pre({ type: 'http', url: 'https://example.com', secret: 'short' }), 'body.hooks.PreToolUse.0.hooks.0.secret'],
  ])('names the field that is invalid: %j', async (hooks, message) => {
    const { status, body } = await call('POST', '/conversations', { llm_config: { model: 'x' }, hooks })
    expect([status, body.message]).toEqual([400, expect.stringContaining(message)])
  })

  test('refuses the value of a secret in a command', async () => {
    const value = 'hunter2-hunter2-hunter2'
    const id = await stage.create({ secrets: { TOKEN: value } })
    const hooks = pre({ type: 'command', command: `curl -H ${value}` })
    const { status, body } = await call('PUT', `/conversations/${id}/config`, { hooks })
    expect([status, body.message]).toEqual([400, expect.stringContaining('hooks.PreToolUse.0.hooks.0.command')])
  })

  test('takes the scopes of what hooks can do', async () => {
    const key = async (...scopes: string[]) => (await call('POST', '/keys', { name: 'k', scopes })).body.key
    const put = async (token: string, hooks: object) => {
      const { status } = await call(
        'PUT',
        `/conversations/${id}/config`,
        { hooks },
        { authorization: `Bearer ${token}` },
      )
      return status
    }
    const id = await stage.create()
    const command = pre({ type: 'command', command: 'true' })
    const url = pre(http())
    expect(await put(await key('write', 'commands', 'read'), command)).toBe(403)
    expect(await put(await key('write', 'approve'), command)).toBe(403)
    expect(await put(await key('write', 'approve', 'commands'), command)).toBe(200)
    expect(await put(await key('write', 'approve', 'commands'), url)).toBe(403)
    expect(await put(await key('write', 'approve', 'read'), url)).toBe(200)
    expect(await put(await key('write', 'approve'), {})).toBe(200)
    const created = await call(
      'POST',
      '/conversations',
      { llm_config: { model: 'x' }, hooks: command },
      {
        authorization: `Bearer ${await key('write')}`,
      },
    )
    expect(created.status).toBe(403)
  })
})
