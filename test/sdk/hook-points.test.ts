/**
 * Where each hook is called, for the main agent and inside subagents: by functions of a program, and by commands of a
 * settings file that is trusted. All of it is one session, in which everything happens that a hook can be called for.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import type { HookPoint } from '../../src/contract/hooks/hook-point.ts'
import { HOOK_POINTS } from '../../src/contract/hooks/hook-point.ts'
import type { QueryOptions } from '../../src/index.ts'
import { run, sessions } from '../../src/index.ts'
import { until } from '../support/until.ts'
import { setServedStage } from './stage.ts'

// Without a sandbox, because many commands run.
const stage = await setServedStage({ OPENHANDS_ISOLATION: 'none' })
const { server } = stage

type Payload = Readonly<Record<string, unknown>>

/** What a payload has, apart from the fields of every payload. Absent: the point is not called for these agents. */
type Row = { readonly main?: Payload; readonly subagent?: Payload }

const both = (fields: Payload): Row => ({ main: fields, subagent: fields })
const string = expect.any(String)
const call = { tool_name: 'Bash', tool_input: { command: 'mkdir -p made' }, tool_use_id: string }

const ROWS: Readonly<Record<HookPoint, Row>> = {
  SessionStart: { main: { source: 'startup', model: 'scripted' } },
  SessionEnd: { main: { reason: 'other' } },
  UserPromptSubmit: { main: { prompt: 'hello' } },
  PreModelCall: both({ model: 'scripted', message_count: expect.any(Number) }),
  PostModelCall: both({ model: 'scripted', response: expect.objectContaining({ text: string }) }),
  PreToolUse: both(call),
  PostToolUse: both({ ...call, tool_response: expect.anything() }),
  PostToolUseFailure: both({ tool_name: 'Read', error: string, is_interrupt: false }),
  PostToolBatch: both({ tool_calls: expect.arrayContaining([{ ...call, tool_response: expect.anything() }]) }),
  PermissionRequest: both({ ...call, permission_suggestions: [] }),
  PermissionDenied: both({ tool_name: 'Bash', tool_input: { command: 'rm made' }, reason: string }),
  Stop: { main: { stop_hook_active: false, last_assistant_message: 'hello' } },
  StopFailure: both({ error: 'authentication_failed', error_details: expect.stringContaining('Incorrect API key') }),
  SubagentStart: { subagent: {} },
  SubagentStop: { subagent: { stop_hook_active: false, last_assistant_message: string } },
  PreCompact: both({ trigger: 'auto' }),
  PostCompact: both({ trigger: 'auto', compact_summary: string }),
  FileChanged: both({ file_path: expect.stringMatching(/written$/), event: 'add' }),
  TaskCompleted: { main: { task_id: string, task_subject: 'a command' } },
  Notification: both({ notification_type: 'permission_prompt', message: expect.stringContaining('Bash') }),
}

const bash = (command: string) => ({ name: 'Bash', arguments: { command } })
const work = (written: string) =>
  `calls ${JSON.stringify([
    bash('mkdir -p made'),
    bash('rm made'),
    bash('head -c 24000 /dev/zero | tr "\\0" x'),
    { name: 'Read', arguments: { file_path: 'missing' } },
    { name: 'Write', arguments: { file_path: written, content: 'x' } },
  ])}`
const delegated = (prompt: string) =>
  `call Task ${JSON.stringify({ description: 'x', prompt, subagent_type: 'general-purpose' })}`

const cwd = join(stage.home, 'project')
const byFunctions: Payload[] = []
let byCommands: readonly Payload[] = []

/** The commands write into a file of the workdir, each a line. */
const readNotes = async () =>
  (await readFile(join(cwd, 'notes'), 'utf8'))
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Payload)

beforeAll(async () => {
  await mkdir(join(cwd, '.claude'), { recursive: true })
  const note = { type: 'command', command: `printf '%s\\n' "$(cat)" >> "$CLAUDE_PROJECT_DIR/notes"` }
  const ofFile = Object.fromEntries(HOOK_POINTS.map((point) => [point, [{ hooks: [note] }]]))
  await writeFile(join(cwd, '.claude/settings.json'), JSON.stringify({ hooks: ofFile }))

  const watch = (payload: Payload) => void byFunctions.push(payload)
  const place = { server: { baseUrl: server.url, apiKey: server.apiKey } }
  const { model, baseUrl, apiKey } = stage.options
  const options: QueryOptions = {
    ...place,
    hooks: Object.fromEntries(HOOK_POINTS.map((point) => [point, [{ hooks: [watch] }]])),
    canUseTool: () => ({ behavior: 'allow' }),
  }
  const { sessionId } = await run({
    prompt: 'hello',
    options: {
      ...options,
      model,
      baseUrl,
      apiKey,
      cwd,
      tools: ['Bash', 'Read', 'Write', 'Task'],
      llm: { contextWindow: 8000 },
      disallowedTools: ['Bash(rm *)'],
      settingSources: ['project'],
      conversation: { trust_project: true },
    },
  })
  const prompts = [work('a-written'), delegated(work('b-written')), 'refuse', delegated('refuse')]
  for (const prompt of prompts) await run({ prompt, options: { ...options, resume: sessionId } })
  // In the background, while the query lasts.
  const { tasks } = server.client.conversation(sessionId)
  await run({
    prompt: (async function* () {
      yield 'hello'
      await tasks.post({ title: 'a command', runnable: { type: 'Command', command: 'true' } })
      await until('the function is called', async () => seen(byFunctions, 'TaskCompleted', false).length > 0)
    })(),
    options: { ...options, resume: sessionId },
  })
  await sessions(place).delete(sessionId)
  await until('the last command has run', async () => seen(await readNotes(), 'SessionEnd', false).length > 0)
  byCommands = await readNotes()
})

const seen = (payloads: readonly Payload[], point: string, inSubagent: boolean) =>
  payloads.filter((each) => each['hook_event_name'] === point && 'agent_id' in each === inSubagent)

describe.each(HOOK_POINTS)('%s is called', (point) => {
  const { main, subagent } = ROWS[point]
  // The session ends after the last query.
  const ways = ['a command of a trusted settings file', ...(point === 'SessionEnd' ? [] : ['a function'])]

  test.each(ways)(
    `by %s, for the main agent: ${main !== undefined}, in a subagent: ${subagent !== undefined}`,
    (way) => {
      const payloads = way === 'a function' ? byFunctions : byCommands
      const expected = (fields: Payload, more: Payload) =>
        expect.arrayContaining([expect.objectContaining({ session_id: string, cwd, ...fields, ...more })])
      const ofMain = seen(payloads, point, false)
      const ofSubagents = seen(payloads, point, true)
      expect(ofMain).toEqual(main ? expected(main, {}) : [])
      expect(ofSubagents).toEqual(
        subagent ? expected(subagent, { agent_id: string, agent_type: 'general-purpose' }) : [],
      )
    },
  )
})

test('docs/hooks.md says at which points nothing is called in a subagent', async () => {
  const page = await readFile(join(import.meta.dirname, '../../docs/hooks.md'), 'utf8')
  const said = /In a subagent, all points are called except (.*)\.\n/.exec(page)?.[1] ?? ''
  const named = [...said.matchAll(/`(\w+)`/g)].map(([, point]) => point)
  expect(new Set(named)).toEqual(new Set(HOOK_POINTS.filter((point) => ROWS[point].subagent === undefined)))
})
