/** Hooks at each point of a run, over HTTP and a WebSocket: what the model reads, what the log has, and what a restart leaves. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ScriptedQuestion } from '../../src/llm/scripted/script.ts'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { markedProcesses } from '../support/marked.ts'
import { KEY } from '../support/server.ts'
import { approve, requestsOf } from './requests.ts'

let stage: Stage

beforeAll(async () => {
  stage = await setStage(({ body }) => turnFor(body))
})
afterAll(() => stage[Symbol.asyncDispose]())

function turnFor(body: ScriptedQuestion['body']) {
  if (body.messages.at(-1)?.role === 'tool') return { text: 'Done.' }
  if (textsOf(body).includes('write a file'))
    return { calls: [{ name: 'FileEditor', arguments: { command: 'create', path: 'new', file_text: 'original' } }] }
  const more = textsOf(body).find((each) => each.startsWith('view with '))
  if (more !== undefined)
    return {
      calls: [{ name: 'FileEditor', arguments: { command: 'view', path: 'sub/../a', ...JSON.parse(more.slice(10)) } }],
    }
  const text = textsOf(body).find((each) => each.startsWith('run '))
  return text === undefined || body.messages.some(({ role }) => role === 'tool')
    ? { text: `I read: ${textsOf(body).join(' | ')}` }
    : bash(text.slice(4))
}

/** Of all messages of the user. */
function textsOf({ messages }: ScriptedQuestion['body']): string[] {
  return messages
    .filter(({ role }) => role === 'user')
    .flatMap(({ content }): string[] =>
      typeof content === 'string' ? [content] : Object.values(Object(content)).map((part) => Object(part).text),
    )
}

const command = (text: string, more: object = {}) => ({ type: 'command', command: text, ...more })
const at = (point: string, ...hooks: object[]) => ({ [point]: [{ hooks }] })
const says = (answer: object) => command(`echo '${JSON.stringify(answer)}'`)
const specific = (hookEventName: string, more: object) => says({ hookSpecificOutput: { hookEventName, ...more } })
const typed = (events: readonly any[], type: string) => events.filter((event) => event.type === type) // eslint-disable-line typescript/no-explicit-any
const call = (...args: Parameters<Stage['server']['call']>) => stage.server.call(...args)
const post = (id: string, content: string) =>
  call('POST', `/conversations/${id}/messages`, { message: { role: 'user', content }, run: true })
const statusOf = async (id: string) => (await call('GET', `/conversations/${id}`)).body.status
const workdirOf = async (id: string) => (await call('GET', `/conversations/${id}`)).body.workdir

describe('the payload', () => {
  test('has the fields of Claude Code, and the workdir in CLAUDE_PROJECT_DIR', async () => {
    const id = await stage.create({ hooks: at('PreToolUse', command('cat > "$CLAUDE_PROJECT_DIR/payload.json"')) })
    await stage.say(id, 'run echo x')
    const workdir = await workdirOf(id)
    expect(JSON.parse(await readFile(join(workdir, 'payload.json'), 'utf8'))).toEqual({
      session_id: id,
      transcript_path: '',
      cwd: workdir,
      permission_mode: 'bypassPermissions',
      hook_event_name: 'PreToolUse',
      tool_name: 'Bash',
      tool_input: { command: 'echo x' },
      tool_use_id: expect.any(String),
    })
  })

  test.each(['PreToolUse', 'PermissionRequest', 'PostToolUseFailure', 'PostToolBatch'])(
    'has what the tool reads of a call at %s: nothing that it ignores, and the path as it opens it',
    async (point) => {
      const denial = JSON.stringify({ hookSpecificOutput: { hookEventName: point, decision: { behavior: 'deny' } } })
      const hook = `cat > "$CLAUDE_PROJECT_DIR/payload.json"${point === 'PermissionRequest' ? `; echo '${denial}'` : ''}`
      const permission_rules = point === 'PermissionRequest' ? { ask: ['FileEditor'] } : {}
      const id = await stage.create({ hooks: at(point, command(hook)), permission_rules })
      const workdir = await workdirOf(id)
      await stage.say(id, `view with ${JSON.stringify({ file_path: join(workdir, 'other'), view_range: null })}`)
      const payload = JSON.parse(await readFile(join(workdir, 'payload.json'), 'utf8'))
      const [{ tool_input }] = payload.tool_calls ?? [payload]
      expect(tool_input).toEqual({ command: 'view', file_path: `${workdir}/sub/../a` })
    },
  )
})

describe('UserPromptSubmit', () => {
  test('adds context that every later request has in the same place', async () => {
    const id = await stage.create({ hooks: at('UserPromptSubmit', command('echo the build is red')) })
    await stage.say(id, 'first')
    await stage.say(id, 'second')
    const [first, second] = stage.model.requests.slice(-2).map(({ body }) => JSON.stringify(body.messages))
    expect(first).toContain('UserPromptSubmit hook: the build is red')
    expect(second!.startsWith(first!.slice(0, -1))).toBe(true)
    await stage.server.restart('SIGKILL')
    await stage.say(id, 'third')
    const third = JSON.stringify(stage.model.requests.at(-1)!.body.messages)
    expect(third.startsWith(second!.slice(0, -1))).toBe(true)
  })

  test('blocks a message: 403, nothing of it is stored, and a task or a first message cannot get around it', async () => {
    const hooks = at('UserPromptSubmit', command('grep -q secret-plan && { echo not that >&2; exit 2; }; exit 0'))
    const id = await stage.create({ hooks })
    const message = { role: 'user', content: 'the secret-plan' }
    const blocked = await call('POST', `/conversations/${id}/messages`, { message, run: true })
    expect(blocked).toMatchObject({
      status: 403,
      body: { error: 'blocked_by_hook', message: expect.stringContaining('not that') },
    })
    const task = await call('POST', `/conversations/${id}/tasks`, {
      title: 't',
      runnable: { type: 'AgentRun', message },
    })
    expect(task).toMatchObject({ status: 403, body: { error: 'blocked_by_hook' } })
    const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
    const created = await call('POST', '/conversations', { llm_config, hooks, initial_message: message })
    expect(created).toMatchObject({ status: 403, body: { error: 'blocked_by_hook' } })
    const events = await stage.events(id)
    expect(typed(events, 'UserMessage')).toEqual([])
    expect(typed(events, 'HookEvent')).toMatchObject([{ action: 'block' }, { action: 'block' }])
    expect(await statusOf(id)).toBe('idle')
    expect((await post(id, 'something else')).status).toBe(202)
  })

  test('a repeated request with the same Idempotency-Key does not call it again', async () => {
    const id = await stage.create({ hooks: at('UserPromptSubmit', command('echo x >> "$CLAUDE_PROJECT_DIR/calls"')) })
    const body = { message: { role: 'user', content: 'once' } }
    const send = () => call('POST', `/conversations/${id}/messages`, body, { 'idempotency-key': 'k1' })
    const [first, second] = [await send(), await send()]
    expect(second.body).toEqual(first.body)
    expect(await readFile(join(await workdirOf(id), 'calls'), 'utf8')).toBe('x\n')
  })
})

describe('PostToolUse', () => {
  test('rewrites the output and adds context; both are part of the stored result', async () => {
    const hooks = at(
      'PostToolUse',
      specific('PostToolUse', { updatedToolOutput: 'masked', additionalContext: 'look again' }),
    )
    const id = await stage.create({ hooks })
    const events = await stage.say(id, 'run echo original')
    expect(typed(events, 'ToolResult')).toMatchObject([{ output: 'masked', context: 'PostToolUse hook: look again' }])
    expect(JSON.stringify(await stage.events(id))).not.toContain('"stdout":"original')
    expect(stage.model.requests.at(-1)!.body.messages.at(-1)!.content).toBe('masked\n\nPostToolUse hook: look again')
  })

  test('hides the patches of an edit with its output', async () => {
    const plain = await stage.say(await stage.create({ hooks: {} }), 'write a file')
    expect(typed(plain, 'ToolResult')).toMatchObject([{ changes: [{ patch: expect.stringContaining('original') }] }])
    const hooks = at('PostToolUse', specific('PostToolUse', { updatedToolOutput: 'masked' }))
    const [result] = typed(await stage.say(await stage.create({ hooks }), 'write a file'), 'ToolResult')
    expect(result).toMatchObject({ output: 'masked' })
    expect(result).not.toHaveProperty('changes')
  })

  test('exit code 2 tells the model why; a failed call has its own point', async () => {
    const hooks = {
      ...at('PostToolUse', command('echo lint failed >&2; exit 2')),
      ...at('PostToolUseFailure', command('cat > "$CLAUDE_PROJECT_DIR/failure.json"')),
    }
    const id = await stage.create({ hooks })
    const [result] = typed(await stage.say(id, 'run echo x'), 'ToolResult')
    expect(result).toMatchObject({ is_error: false, context: 'PostToolUse hook: lint failed' })
    const other = await stage.create({ hooks, tools: ['Bash'], limits: {} })
    await call('POST', `/conversations/${other}/messages`, {
      message: { role: 'user', content: 'run sleep 60' },
      run: true,
    })
    await expect.poll(async () => typed(await stage.events(other), 'ToolUse').length).toBe(1)
    await call('POST', `/conversations/${other}/pause`, { interrupt: true })
    // A command that ends slowly gets its result later than the pause its answer.
    await expect
      .poll(async () => typed(await stage.events(other), 'ToolResult'))
      .toMatchObject([{ error_type: 'interrupted' }])
  })
})

describe('Stop', () => {
  test('has the agent continue with its reason, once if it looks at stop_hook_active', async () => {
    const script = `grep -q '"stop_hook_active":true' || { echo run the tests first >&2; exit 2; }`
    const id = await stage.create({ hooks: at('Stop', command(script)) })
    const events = await stage.say(id, 'work')
    expect(typed(events, 'AssistantMessage').map(({ text }) => text)).toEqual([
      'I read: work',
      'I read: work | Stop hook: run the tests first',
    ])
    expect(typed(events, 'HookEvent')).toMatchObject([{ action: 'block' }, { action: 'continue' }])
    expect(typed(events, 'Result')).toMatchObject([{ stop_reason: 'completed' }])
  })

  test('cannot keep a run alive without end', async () => {
    const id = await stage.create({ hooks: at('Stop', command('exit 2')) })
    const events = await stage.say(id, 'work')
    expect(typed(events, 'AssistantMessage')).toHaveLength(6)
    const advised = typed(events, 'HookEvent').map(({ context }) => context?.includes('without calling a tool'))
    expect(advised).toEqual([false, false, false, true, true, false])
    expect(typed(events, 'Result')).toMatchObject([{ stop_reason: 'stuck' }])
  })
})

describe('continue: false', () => {
  test.each(['PreToolUse', 'PostToolUse', 'SessionStart', 'Stop'])('at %s ends the run', async (point) => {
    const id = await stage.create({ hooks: at(point, says({ continue: false, stopReason: 'enough' })) })
    const events = await stage.say(id, point === 'Stop' ? 'hello' : 'run echo x')
    expect(typed(events, 'Result')).toMatchObject([{ stop_reason: point === 'Stop' ? 'completed' : 'hook' }])
    expect(typed(events, 'HookEvent')).toMatchObject([{ action: 'block', message: 'enough' }])
    const results = { PreToolUse: ['interrupted'], PostToolUse: [undefined] }
    expect(typed(events, 'ToolResult').map(({ error_type }) => error_type)).toEqual(
      results[point as keyof typeof results] ?? [],
    )
    expect(await statusOf(id)).toBe('idle')
  })
})

describe('the hooks around model requests', () => {
  test('block a request or its answer, and the run ends with a clear error', async () => {
    for (const point of ['PreModelCall', 'PostModelCall']) {
      const id = await stage.create({ hooks: at(point, command('echo over budget >&2; exit 2')) })
      const events = await stage.say(id, 'hello')
      expect(typed(events, 'ErrorEvent')).toMatchObject([
        { error_type: 'config', message: `A ${point} hook ended the run: over budget`, retryable: false },
      ])
      const usage = { scripted: expect.objectContaining({ input_tokens: expect.any(Number) }) }
      const paidFor = point === 'PostModelCall'
      expect(typed(events, 'AssistantMessage')).toMatchObject(
        paidFor ? [{ text: '', content: [], tool_use_ids: [], partial: true, usage: usage.scripted }] : [],
      )
      expect(typed(events, 'Result')).toMatchObject([{ usage: paidFor ? usage : {} }])
      expect((await call('GET', `/conversations/${id}`)).body.usage).toEqual(paidFor ? usage : {})
      expect(await statusOf(id)).toBe('error')
    }
  })

  test('add context without changing what was sent before, also to a run without a message, over a crash', async () => {
    const context = (point: string) => at(point, specific(point, { additionalContext: `from ${point}` }))
    const id = await stage.create({ hooks: { ...context('PreModelCall'), ...context('PostModelCall') } })
    await stage.say(id, 'hello')
    await call('POST', `/conversations/${id}/run`)
    await expect.poll(() => statusOf(id)).toBe('idle')
    const before = stage.model.requests.at(-1)!.body.messages
    await stage.server.restart('SIGKILL')
    await stage.say(id, 'again')
    expect(stage.model.requests.at(-1)!.body.messages.slice(0, before.length)).toEqual(before)
  })

  test('rewrite messages only with enable_message_rewrite_hooks', async () => {
    const hooks = {
      ...at('PreModelCall', specific('PreModelCall', { updatedMessages: [{ role: 'user', content: 'rewritten' }] })),
      ...at('PostModelCall', specific('PostModelCall', { updatedText: 'nicer' })),
    }
    const off = await stage.say(await stage.create({ hooks }), 'hello')
    expect(typed(off, 'AssistantMessage')).toMatchObject([{ text: 'I read: hello' }])
    expect(typed(off, 'HookEvent')).toMatchObject([
      { action: 'continue', message: expect.stringContaining('enable_message_rewrite_hooks is off') },
      { action: 'continue' },
    ])
    const on = await stage.say(await stage.create({ hooks, enable_message_rewrite_hooks: true }), 'hello')
    expect(stage.model.requests.at(-1)!.body.messages.at(-1)).toMatchObject({ role: 'user' })
    expect(JSON.stringify(stage.model.requests.at(-1)!.body.messages)).not.toContain('hello')
    expect(typed(on, 'AssistantMessage')).toMatchObject([{ text: 'nicer' }])
    expect(typed(on, 'HookEvent')).toMatchObject([{ action: 'rewrite' }, { action: 'rewrite' }])
  })

  test('messages that no provider would accept are a failure of the hook', async () => {
    const updatedMessages = [{ role: 'tool', tool_call_id: 'x', content: 'y' }]
    const hooks = at('PreModelCall', specific('PreModelCall', { updatedMessages }))
    const events = await stage.say(await stage.create({ hooks, enable_message_rewrite_hooks: true }), 'hello')
    expect(typed(events, 'HookEvent')).toMatchObject([{ action: 'error' }])
    expect(typed(events, 'ErrorEvent')).toMatchObject([{ message: expect.stringContaining('updatedMessages') }])
  })
})

describe('the session', () => {
  test('begins with startup, continues with resume after a restart, and its context stays', async () => {
    const hooks = at('SessionStart', command(`echo "began by $(grep -o '"source":"[a-z]*"')"`))
    const id = await stage.create({ hooks })
    await stage.say(id, 'one')
    await stage.say(id, 'two')
    await stage.server.restart()
    const events = await stage.say(id, 'three')
    expect(typed(events, 'AssistantMessage')).toMatchObject([
      {
        text: 'I read: one | SessionStart hook: began by "source":"startup" | two | three | SessionStart hook: began by "source":"resume"',
      },
    ])
  })
})

describe('processes of hooks', () => {
  test('end with the hook, also those that left its process tree', async () => {
    const hooks = at('PreToolUse', command('setsid sleep 600 & sleep 600 & disown -a; echo fine'))
    const id = await stage.create({ hooks })
    const events = await stage.say(id, 'run echo x')
    expect(typed(events, 'ToolResult')).toMatchObject([{ is_error: false }])
    await expect.poll(() => markedProcesses(id).filter((each) => each.name === 'sleep')).toEqual([])
  })

  test.each(['pause', 'delete'])('end with a %s, which does not wait for them', async (how) => {
    const id = await stage.create({ hooks: at('PreToolUse', command('sleep 600')) })
    await post(id, 'run touch made')
    await expect.poll(() => markedProcesses(id).filter((each) => each.name === 'sleep').length).toBeGreaterThan(0)
    if (how === 'pause') expect((await call('POST', `/conversations/${id}/pause`)).body.status).toBe('paused')
    else expect((await call('DELETE', `/conversations/${id}`)).status).toBe(204)
    await expect.poll(() => markedProcesses(id)).toEqual([])
    if (how === 'pause') expect(typed(await stage.events(id), 'ToolResult')).toEqual([])
  })

  test('do not see or change the agent’s shell session, and print no secret', async () => {
    const hooks = at('PreToolUse', command('export MARK=hook; echo "mark=$MARK_OF_AGENT token=$TOKEN" >&2; exit 1'))
    const id = await stage.create({ hooks, secrets: { TOKEN: 'hunter2-hunter2-hunter2' } })
    await stage.say(id, 'run export MARK_OF_AGENT=yes')
    await call('PUT', `/conversations/${id}/config`, { hooks: at('Stop', command('true')) })
    const events = await stage.events(id)
    expect(typed(events, 'HookEvent')[0]).toMatchObject({ message: 'exit code 1: mark= token=<secret:TOKEN>' })
    expect(JSON.stringify(events)).not.toContain('hunter2-hunter2')
  })
})

describe('what hooks get', () => {
  test('has no value of a secret, also in a message', async () => {
    const hooks = at('UserPromptSubmit', command('cat > "$CLAUDE_PROJECT_DIR/prompt.json"'))
    const id = await stage.create({ hooks, secrets: { TOKEN: 'hunter2-hunter2-hunter2' } })
    await stage.say(id, 'it is hunter2-hunter2-hunter2')
    const { prompt } = JSON.parse(await readFile(join(await workdirOf(id), 'prompt.json'), 'utf8'))
    expect(prompt).toBe('it is <secret:TOKEN>')
  })

  test('may be more than a pipe holds, and need not be read', async () => {
    const id = await stage.create({ hooks: at('UserPromptSubmit', command('wc -c | tr -d " \\n"'), command('true')) })
    await stage.say(id, `long ${'x'.repeat(3_000_000)}`)
    const [message] = typed(await stage.events(id), 'UserMessage')
    expect(Number(/hook: (\d+)$/.exec(message.context)?.[1])).toBeGreaterThan(3_000_000)
  })

  test('a context that is too long is cut', async () => {
    const id = await stage.create({ hooks: at('SessionStart', command('head -c 100000 /dev/zero | tr "\\0" "x"')) })
    const events = await stage.say(id, 'hello')
    const [event] = typed(events, 'HookEvent')
    expect(event.context.length).toBeLessThan(11_000)
    expect(event.context).toMatch(/\[cut after 10000 characters\]$/)
  })
})

describe('PermissionRequest', () => {
  const allow = specific('PermissionRequest', { decision: { behavior: 'allow' } })
  const deny = specific('PermissionRequest', { decision: { behavior: 'deny', message: 'too risky' } })
  const other = { decision: { behavior: 'allow', updatedInput: { command: 'echo other' } } }

  test.each(['callback', 'default'])('answers before the user in the mode %s', async (permission_mode) => {
    const allowed = await stage.say(
      await stage.create({ permission_mode, hooks: at('PermissionRequest', allow) }),
      'run touch a',
    )
    expect(typed(allowed, 'ToolResult')).toMatchObject([{ is_error: false }])
    expect(typed(allowed, 'RequestAnswered')).toMatchObject([
      { answer: { decisions: [{ behavior: 'allow' }] }, answered_by: 'hook' },
    ])
    expect(typed(allowed, 'StatusUpdate').map(({ status }) => status)).not.toContain('waiting_for_confirmation')
    const denied = await stage.say(
      await stage.create({ permission_mode, hooks: at('PermissionRequest', allow, deny) }),
      'run touch a',
    )
    expect(typed(denied, 'ToolResult')).toMatchObject([
      { error_type: 'denied', output: 'A hook did not allow this call: too risky' },
    ])
    const changed = await stage.say(
      await stage.create({ permission_mode, hooks: at('PermissionRequest', specific('PermissionRequest', other)) }),
      'run touch a',
    )
    expect(typed(changed, 'ToolResult')).toMatchObject([{ ran_input: { command: 'echo other' }, changed_by: 'hook' }])
  })

  test('without an answer: denied in the mode callback, a question in the mode default', async () => {
    const hooks = at('PermissionRequest', command('sleep 60', { timeout: 0.3 }))
    const denied = await stage.say(await stage.create({ permission_mode: 'callback', hooks }), 'run touch a')
    expect(typed(denied, 'ToolResult')).toMatchObject([
      { error_type: 'denied', output: expect.stringContaining('no approver answered') },
    ])
    expect(typed(denied, 'RequestAnswered')).toMatchObject([
      { answer: { decisions: [{ behavior: 'deny' }] }, answered_by: 'mode' },
    ])
    const id = await stage.create({ permission_mode: 'default', hooks })
    await post(id, 'run touch a')
    await expect.poll(() => statusOf(id)).toBe('waiting_for_confirmation')
  })

  test.each([
    ['callback', 'idle'],
    ['default', 'waiting_for_confirmation'],
  ])(
    'comes to an end with a PreToolUse that changes the input by turns, in the mode %s',
    async (permission_mode, end) => {
      const pre = specific('PreToolUse', { updatedInput: { command: 'touch wrapped' } })
      const hooks = { ...at('PreToolUse', pre), ...at('PermissionRequest', specific('PermissionRequest', other)) }
      const id = await stage.create({ permission_mode, hooks })
      await post(id, 'run touch a')
      await expect.poll(() => statusOf(id)).toBe(end)
      expect(typed(await stage.events(id), 'RequestOpened').length).toBeLessThan(8)
    },
  )

  test('that is replaced before it answers decides nothing', async () => {
    const hook = `touch asked; until [ -e go ]; do sleep 0.05; done; echo '{"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}}'`
    const id = await stage.create({ permission_mode: 'default', hooks: at('PermissionRequest', command(hook)) })
    const workdir = await workdirOf(id)
    await post(id, 'run touch a')
    await expect.poll(() => readFile(join(workdir, 'asked'), 'utf8').catch(() => undefined)).toBe('')
    expect((await call('PUT', `/conversations/${id}/config`, { hooks: {} })).status).toBe(200)
    await writeFile(join(workdir, 'go'), '')
    await expect.poll(() => statusOf(id)).toBe('waiting_for_confirmation')
    expect(typed(await stage.events(id), 'RequestAnswered')).toEqual([])
  })

  test('an answer never skips a deny rule', async () => {
    const fields = { permission_mode: 'callback', permission_rules: { deny: ['Bash(touch:*)'] } }
    const events = await stage.say(
      await stage.create({ ...fields, hooks: at('PermissionRequest', allow) }),
      'run touch a',
    )
    expect(typed(events, 'ToolResult')).toMatchObject([{ error_type: 'denied' }])
    expect(typed(events, 'HookEvent')).toEqual([])
  })

  test('Notification hooks learn of calls that wait', async () => {
    const hooks = at('Notification', command('cat > "$CLAUDE_PROJECT_DIR/note.json"'))
    const id = await stage.create({ permission_mode: 'default', hooks })
    await post(id, 'run touch a')
    await expect.poll(async () => typed(await stage.events(id), 'HookEvent').length).toBe(1)
    expect(JSON.parse(await readFile(join(await workdirOf(id), 'note.json'), 'utf8'))).toMatchObject({
      message: 'The agent needs your permission to use Bash.',
      notification_type: 'permission_prompt',
    })
  })
})

describe('a restart', () => {
  test('in the middle of a hook: the call does not run, and has one result', async () => {
    const id = await stage.create({ hooks: at('PreToolUse', command('sleep 600')) })
    await post(id, 'run touch made')
    await expect.poll(() => markedProcesses(id).filter((each) => each.name === 'sleep').length).toBeGreaterThan(0)
    await stage.server.restart('SIGKILL')
    await expect.poll(() => statusOf(id)).toBe('paused')
    expect(typed(await stage.events(id), 'ToolResult')).toMatchObject([{ error_type: 'interrupted' }])
    await expect.poll(() => markedProcesses(id)).toEqual([])
  })

  test('while a rewritten call waits: what was shown runs, once, and the hook is not called again', async () => {
    const workdirs = command('echo x >> "$CLAUDE_PROJECT_DIR/calls"')
    const rewrite = specific('PreToolUse', { updatedInput: { command: 'echo ran >> ran' } })
    const id = await stage.create({ permission_mode: 'default', hooks: at('PreToolUse', workdirs, rewrite) })
    await post(id, 'run echo original')
    await expect.poll(() => statusOf(id)).toBe('waiting_for_confirmation')
    await stage.server.restart('SIGKILL')
    const [request] = await requestsOf(call, id, 'permission')
    expect(request.payload.tool_uses).toMatchObject([{ input: { command: 'echo ran >> ran' } }])
    await approve(call, id, request.request_id)
    await expect.poll(() => statusOf(id)).toBe('idle')
    const workdir = await workdirOf(id)
    expect(await readFile(join(workdir, 'ran'), 'utf8')).toBe('ran\n')
    expect(await readFile(join(workdir, 'calls'), 'utf8')).toBe('x\n')
    expect(typed(await stage.events(id), 'ToolResult')).toMatchObject([{ changed_by: 'hook', is_error: false }])
  })
})

test('a WebSocket client sees hooks block its message and a call', async () => {
  const hooks = {
    ...at('UserPromptSubmit', command('grep -q forbidden && exit 2; exit 0')),
    ...at('PreToolUse', command('echo no >&2; exit 2')),
  }
  const id = await stage.create({ hooks })
  await writeFile(join(await workdirOf(id), 'x'), '')
  const socket = new WebSocket(`${stage.server.url.replace('http', 'ws')}/conversations/${id}/ws`, {
    headers: { authorization: `Bearer ${KEY}` },
  })
  const frames: any[] = [] // eslint-disable-line typescript/no-explicit-any
  socket.addEventListener('message', ({ data }) => frames.push(JSON.parse(String(data))))
  await new Promise((resolve) => socket.addEventListener('open', resolve))
  const say = (text: string, frame: string) =>
    socket.send(JSON.stringify({ type: 'message', id: frame, message: { role: 'user', content: text }, run: true }))
  say('forbidden', 'one')
  await expect
    .poll(() => frames.find((frame) => frame.id === 'one'))
    .toMatchObject({ type: 'problem', error: 'blocked_by_hook' })
  say('run echo x', 'two')
  await expect.poll(() => frames.some(({ type }) => type === 'Result')).toBe(true)
  expect(typed(frames, 'ToolResult')).toMatchObject([{ error_type: 'denied' }])
  expect(typed(frames, 'HookEvent').map(({ hook_point, action }) => `${hook_point} ${action}`)).toEqual([
    'UserPromptSubmit block',
    'UserPromptSubmit continue',
    'PreToolUse block',
  ])
  socket.close()
})
