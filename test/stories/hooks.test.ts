/** Hooks over HTTP: unmodified scripts of Claude Code, hooks that fail in every way, and what becomes of the call. */
import { access, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ScriptedQuestion } from '../../src/llm/scripted/script.ts'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { requestsOf } from './requests.ts'

/** As the example of Claude Code's repository: reads JSON, looks at the command, blocks with exit code 2. */
const VALIDATOR = `#!/usr/bin/env python3
import json, re, sys
RULES = [(r"^grep\\b(?!.*\\|)", "Use 'rg' instead of 'grep'")]
try:
    data = json.load(sys.stdin)
except json.JSONDecodeError as e:
    print(f"Error: Invalid JSON input: {e}", file=sys.stderr)
    sys.exit(1)
if data.get("tool_name", "") != "Bash":
    sys.exit(0)
command = data.get("tool_input", {}).get("command", "")
issues = [message for pattern, message in RULES if re.search(pattern, command)]
for message in issues:
    print(f"• {message}", file=sys.stderr)
sys.exit(2 if issues else 0)
`

let stage: Stage

/** The last message names the command to run; after its result, the model says what it read. */
beforeAll(async () => {
  stage = await setStage(({ body }) => turnFor(body), {
    env: { OPENHANDS_CALLBACK_ALLOW: '127.0.0.1' },
  })
})
afterAll(() => stage[Symbol.asyncDispose]())

function turnFor(body: ScriptedQuestion['body']) {
  const last = body.messages.at(-1)
  const text = lastText(body)
  if (last?.role === 'tool') return { text: 'Done.' }
  return text.startsWith('run ') ? bash(text.slice(4)) : { text: `I read: ${text}` }
}

/** Of the newest message of the user; hooks may have added a second part. */
function lastText(body: ScriptedQuestion['body']): string {
  const content = body.messages.findLast(({ role }) => role === 'user')?.content
  return typeof content === 'string' ? content : (Object(content)[0]?.text ?? '')
}

const command = (text: string, more: object = {}) => ({ type: 'command', command: text, ...more })
const pre = (hook: object, matcher = 'Bash') => ({ PreToolUse: [{ matcher, hooks: [hook] }] })

async function workdirOf(id: string): Promise<string> {
  return (await stage.server.call('GET', `/conversations/${id}`)).body.workdir
}

const isThere = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  )

/** Runs `touch made` with this hook; returns whether it ran, and what the log says. */
async function touchWith(hooks: object, fields: object = {}) {
  const id = await stage.create({ hooks, ...fields })
  const events = await stage.say(id, 'run touch made')
  const workdir = await workdirOf(id)
  return {
    id,
    events,
    ran: await isThere(join(workdir, 'made')),
    result: events.find(({ type }) => type === 'ToolResult'),
    hooks: events.filter(({ type }) => type === 'HookEvent'),
  }
}

describe('a command hook before a call', () => {
  test('works unmodified: the validator of Claude Code blocks grep, and nothing else', async () => {
    const id = await stage.create({ hooks: pre(command('python3 "$CLAUDE_PROJECT_DIR"/validate.py')) })
    await writeFile(join(await workdirOf(id), 'validate.py'), VALIDATOR)
    const blocked = await stage.say(id, 'run grep x file')
    expect(blocked.find(({ type }) => type === 'ToolResult')).toMatchObject({
      error_type: 'denied',
      output: expect.stringContaining("• Use 'rg' instead of 'grep'"),
    })
    expect(blocked.find(({ type }) => type === 'HookEvent')).toMatchObject({
      hook_point: 'PreToolUse',
      name: 'python3 "$CLAUDE_PROJECT_DIR"/validate.py',
      matched: true,
      action: 'block',
      decision: 'deny',
      duration_ms: expect.any(Number),
    })
    const allowed = await stage.say(id, 'run echo fine')
    expect(allowed.find(({ type }) => type === 'ToolResult')).toMatchObject({ is_error: false })
    expect(allowed.find(({ type }) => type === 'HookEvent')).toMatchObject({ action: 'continue' })
  })

  test.each([
    ['hangs', command('sleep 60', { timeout: 0.5 }), 'did not answer within 0.5 s'],
    ['dies', command('kill -9 $$'), 'ended by a signal'],
    ['is not there', command('/nowhere/hook.sh'), 'could not be run'],
    ['prints something like JSON', command('echo "{ not json"'), 'is not valid JSON'],
    ['prints another form', command(`echo '{"decision": 7}'`), 'does not have the expected form'],
    ['prints bytes', command(`printf '\\377\\376'`), 'is not UTF-8'],
    ['prints 10 MB', command('head -c 10000000 /dev/zero | tr "\\0" "x"'), 'wrote more than'],
    ['prints 10 MB of errors', command('head -c 10000000 /dev/zero >&2'), 'wrote more than'],
  ])('that %s blocks the call, unless it says otherwise', async (_, hook, why) => {
    const [blocked, ignored] = await Promise.all([
      touchWith(pre(hook)),
      touchWith(pre({ ...hook, on_failure: 'continue' })),
    ])
    expect(blocked).toMatchObject({ ran: false, hooks: [{ action: 'error', decision: 'deny' }] })
    expect(blocked.result.output).toContain(why)
    expect(ignored).toMatchObject({ ran: true, hooks: [{ action: 'error', message: expect.stringContaining(why) }] })
  })

  test.each([
    [
      'exit code 1 is a warning',
      command('echo oops >&2; exit 1'),
      { ran: true, action: 'continue', message: 'exit code 1: oops' },
    ],
    ['exit code 2 blocks', command('echo no >&2; exit 2'), { ran: false, action: 'block', message: 'no' }],
    ['exit code 0 with text goes on', command('echo fine'), { ran: true, action: 'continue' }],
    ['exit code 0 without output goes on', command('true'), { ran: true, action: 'continue' }],
    [
      'exit code 0 with JSON decides',
      command(
        `echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "not now"}}'`,
      ),
      { ran: false, action: 'block', message: 'not now' },
    ],
    [
      'the older form decides, too',
      command(`echo '{"decision": "block", "reason": "old"}'`),
      { ran: false, action: 'block', message: 'old' },
    ],
  ])('%s', async (_, hook, { ran, ...event }) => {
    expect(await touchWith(pre(hook))).toMatchObject({ ran, hooks: [event] })
  })

  test('rewrites the input; rules and the model get what runs', async () => {
    const answer = { hookSpecificOutput: { hookEventName: 'PreToolUse', updatedInput: { command: 'touch other' } } }
    const hooks = pre(command(`echo '${JSON.stringify(answer)}'`))
    const done = await touchWith(hooks)
    expect(done).toMatchObject({
      ran: false,
      hooks: [{ action: 'rewrite', updated_input: { command: 'touch other' } }],
    })
    expect(await isThere(join(await workdirOf(done.id), 'other'))).toBe(true)
    expect(done.result).toMatchObject({ ran_input: { command: 'touch other' }, changed_by: 'hook' })
    const toolMessage = stage.model.requests.at(-1)!.body.messages.at(-1)!
    expect(toolMessage.content).toContain('A hook changed this call. What ran is {"command":"touch other"}')

    const denied = await touchWith(hooks, { permission_rules: { deny: ['Bash(touch other)'] } })
    expect(denied.result).toMatchObject({ error_type: 'denied' })
    expect(await isThere(join(await workdirOf(denied.id), 'other'))).toBe(false)
  })

  test('an allow spares the question, and never skips a deny or an ask rule', async () => {
    const allow = { hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'allow' } }
    const hooks = pre(command(`echo '${JSON.stringify(allow)}'`))
    expect(await touchWith(hooks, { permission_mode: 'default' })).toMatchObject({ ran: true })
    const denied = await touchWith(hooks, { permission_rules: { deny: ['Bash(touch:*)'] } })
    expect(denied).toMatchObject({ ran: false, result: { error_type: 'denied' } })
    expect(await touchWith(hooks, { permission_mode: 'plan' })).toMatchObject({ ran: false })
    const id = await stage.create({ hooks, permission_rules: { ask: ['Bash(touch:*)'] } })
    await askFor(id)
  })

  test('an ask is a question in every mode', async () => {
    const ask = {
      hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'ask', permissionDecisionReason: 'sure?' },
    }
    const id = await stage.create({ hooks: pre(command(`echo '${JSON.stringify(ask)}'`)) })
    const [request] = await askFor(id)
    expect(request.payload.tool_uses[0].reason).toContain('a hook asks about it: sure?')
  })
})

async function askFor(id: string) {
  const { call } = stage.server
  await call('POST', `/conversations/${id}/messages`, {
    message: { role: 'user', content: 'run touch made' },
    run: true,
  })
  await expect
    .poll(async () => (await call('GET', `/conversations/${id}`)).body.status)
    .toBe('waiting_for_confirmation')
  expect(await isThere(join(await workdirOf(id), 'made'))).toBe(false)
  return await requestsOf(call, id, 'permission')
}
