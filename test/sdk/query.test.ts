import { execFile } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { readLocalRecord } from '../../src/access/local-record.ts'
import type { QueryEvent, QueryOptions } from '../../src/index.ts'
import { createServer, query, run, sessions, tool } from '../../src/index.ts'
import { lockDataDirectory } from '../../src/storage/files/directory/data-lock.ts'
import { eventsOf, resultsIn, setServedStage } from './stage.ts'
import { takeTime } from '../support/take-time.ts'
import { decisionsIn, openedIn } from '../support/answering.ts'
import { UNTIL_ALLOWED } from '../support/background.ts'

const stage = await setServedStage()
const { options, server } = stage
const { persistDir } = options

const textsIn = (events: readonly QueryEvent[]) =>
  events.flatMap((event) => (event.type === 'AssistantMessage' ? [event.text] : []))
const typesIn = (events: readonly QueryEvent[]) => events.map(({ type }) => type)

/** Programs without types can pass anything. */
const hooked = (fields: object) =>
  ({ ...options, hooks: { PreToolUse: [{ hooks: [() => ({})], ...fields }] } }) as QueryOptions

/** Types accept the fields of `append` only. */
const PRESET = { type: 'preset', preset: 'claude_code', append: 'x' } as { append: string }

const CIRCULAR: Record<string, unknown> = {}
CIRCULAR['self'] = CIRCULAR

describe('a query', () => {
  test('leaves nothing behind: queries share a server, which closes with the last of them, and the process ends by itself', async () => {
    const child = join(import.meta.dirname, 'children/ends-by-itself.ts')
    const dataDir = join(stage.home, 'ends')
    const given = JSON.stringify({ options: { ...options, persistDir: dataDir } })
    const { stdout } = await promisify(execFile)(process.execPath, [child, given])
    expect(stdout.split('\n')).toEqual(['one two', 'Error: aborted', 'Error: the prompt failed', 'end', ''])
    expect(await readLocalRecord(dataDir)).toBeUndefined()
    const statuses = (await Array.fromAsync(sessions({ persistDir: dataDir }).list())).map(({ status }) => status)
    expect(statuses.toSorted()).toEqual(['idle', 'idle', 'paused', 'paused', 'paused', 'paused'])
  })

  test('that is left at any event leaves no run behind', async () => {
    for (const type of ['SystemInit', 'UserMessage', 'StatusUpdate', 'AssistantDelta']) {
      const asking = query({ prompt: 'slow words to say', options: { ...options, includePartialMessages: true } })
      for await (const event of asking) if (event.type === type) break
      expect((await server.client.conversation(asking.sessionId!).get()).status, type).not.toBe('running')
    }
  })

  test('is not begun with a signal that has aborted', async () => {
    const abortController = new AbortController()
    abortController.abort(new Error('too late'))
    await expect(run({ prompt: 'x', options: { ...options, abortController } })).rejects.toThrow('too late')
  })

  test('that is aborted while it waits for its directory ends at once', async () => {
    const dataDir = join(stage.home, 'locked')
    await using _lock = await lockDataDirectory(dataDir)
    const abortController = new AbortController()
    const asking = run({ prompt: 'x', options: { ...options, persistDir: dataDir, abortController } })
    void takeTime(200).then(() => abortController.abort(new Error('given up')))
    await expect(asking).rejects.toThrow('given up')
  })

  test('posts the messages of an iterable as they come; one without messages has no run', async () => {
    const asking = query({ prompt: messages(), options })
    const first = Promise.withResolvers<void>()
    async function* messages() {
      yield 'one'
      await first.promise
      yield { content: [{ type: 'text' as const, text: 'two' }] }
    }
    const events: QueryEvent[] = []
    for await (const event of asking) {
      events.push(event)
      if (event.type === 'Result') first.resolve()
    }
    expect(textsIn(events)).toEqual(['one', 'two'])
    expect(resultsIn(events)).toHaveLength(2)
    const none = query({ prompt: (async function* (): AsyncGenerator<string> {})(), options })
    expect(await eventsOf(none)).toEqual([])
  })

  test('reads a message that comes while the agent works', async () => {
    const begun = Promise.withResolvers<void>()
    async function* messages() {
      yield 'slow words of the first'
      await begun.promise
      yield 'second'
    }
    const events: QueryEvent[] = []
    for await (const event of query({ prompt: messages(), options: { ...options, includePartialMessages: true } })) {
      events.push(event)
      if (event.type === 'AssistantDelta') begun.resolve()
    }
    expect(stage.model.requests.at(-1)?.text).toContain('second')
    expect(events.at(-1)).toMatchObject({ type: 'StatusUpdate', status: 'idle' })
  })

  test('takes back a message that the agent has not read, and ends without its answer', async () => {
    const cwd = join(stage.home, 'withdraws')
    await mkdir(cwd, { recursive: true })
    const begun = Promise.withResolvers<void>()
    const first = `call Bash ${JSON.stringify({ command: UNTIL_ALLOWED })}`
    async function* messages() {
      yield first
      await begun.promise
      yield 'a later message'
    }
    const asking = query({ prompt: messages(), options: { ...options, cwd, permissionMode: 'bypass' } })
    const requests = stage.model.requests.length
    const texts: unknown[] = []
    for await (const event of asking) {
      if (event.type === 'ToolUse') begun.resolve()
      if (event.type !== 'UserMessage' || texts.push(event.content) < 2) continue
      expect((await asking.withdrawMessage(event.id)).message?.content).toEqual(event.content)
      await writeFile(join(cwd, 'allowed'), '')
    }
    expect(texts).toEqual([[{ type: 'text', text: first }], [{ type: 'text', text: 'a later message' }]])
    const asked = stage.model.requests.slice(requests).map(({ text }) => text.includes('a later message'))
    expect(asked, 'the call, and its result').toEqual([false, false])
  })

  test('restores the files as they were when a message was sent, and the conversation stays', async () => {
    const cwd = join(stage.home, 'rewinds')
    await mkdir(cwd, { recursive: true })
    const ended = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    async function* messages() {
      yield 'call Bash {"command": "echo one > notes.txt"}'
      await ended[0]!.promise
      yield 'call Bash {"command": "echo two > notes.txt"}'
      await ended[1]!.promise
    }
    const given = { ...options, cwd, permissionMode: 'bypass', enableFileCheckpointing: true } as const
    const asking = query({ prompt: messages(), options: given })
    const ids: string[] = []
    let results = 0
    for await (const event of asking) {
      if (event.type === 'UserMessage') ids.push(event.id)
      if (event.type !== 'Result') continue
      if (++results === 2) {
        const plan = { canRewind: true, filesChanged: ['notes.txt'], insertions: 1, deletions: 1 }
        expect(await asking.rewindFiles(ids[1]!, { dryRun: true })).toEqual(plan)
        expect(await readFile(join(cwd, 'notes.txt'), 'utf8')).toBe('two\n')
        await writeFile(join(cwd, 'notes.txt'), 'mine\n')
        expect(await asking.rewindFiles(ids[1]!)).toEqual({
          canRewind: false,
          error: expect.stringContaining('notes.txt'),
        })
        expect(await asking.rewindFiles(ids[1]!, { force: true })).toEqual(plan)
      }
      ended[results - 1]?.resolve()
    }
    expect(await readFile(join(cwd, 'notes.txt'), 'utf8')).toBe('one\n')
  })

  test('can be controlled while it lasts', async () => {
    const asking = query({ prompt: `slow ${'words that take a while to be said '.repeat(50)}`, options })
    await expect(asking.interrupt()).rejects.toThrow('Read its first event')
    const events: QueryEvent[] = []
    for await (const event of asking) {
      events.push(event)
      if (event.type !== 'UserMessage') continue
      await asking.setModel('another')
      await asking.setPermissionMode('plan')
      await asking.interrupt()
    }
    expect(resultsIn(events)).toMatchObject([{ stop_reason: 'paused' }])
    expect(typesIn(events).filter((type) => type === 'ConfigUpdate')).toHaveLength(2)
    await expect(asking.interrupt()).rejects.toThrow('while it lasts')
    expect(await sessions({ persistDir }).get(asking.sessionId!)).toMatchObject({
      llm_config: { model: 'another' },
      state: { permission_mode: 'plan' },
    })
  })

  test('returns output that fits a schema, also in a session that is continued', async () => {
    const outputSchema = z.object({ n: z.number() })
    const first = await run({ prompt: '{"n": 1}', options: { ...options, outputSchema } })
    expect(first.structuredOutput).toEqual({ n: 1 })
    const { sessionId: resume } = await run({ prompt: 'hello', options })
    const later = await run({ prompt: '{"n": 2}', options: { ...options, resume, outputSchema } })
    expect(later.structuredOutput).toEqual({ n: 2 })
  })

  test.each<[string, QueryOptions, string]>([
    ['no model', { persistDir }, 'There is no model. Pass the option model'],
    ['an unknown session', { ...options, resume: '01a204fc-9eae-717e-9781-7121af1a8a75' }, 'does not exist'],
    ['two sessions', { ...options, resume: 'a', fork: 'b' }, 'Pass one of them'],
    ['a fork of nothing', { ...options, fork: true }, 'Pass its id'],
    ['two directories', { ...options, cwd: '/a', projectDir: '/b' }, 'must be the same directory'],
    ['two places', { ...options, server: { baseUrl: 'http://localhost:1' } }, 'Pass one of them'],
    ['no terminal', { ...options, interactiveApprover: true }, 'needs a terminal'],
    [
      'nothing to continue',
      { ...options, continue: true, cwd: '/nowhere' },
      'There is no session to continue in /nowhere',
    ],
    ['a directory that cannot be written', { ...options, persistDir: '/proc/nowhere' }, 'OPENHANDS_DATA_DIR'],
    ['an unknown point', { ...options, hooks: { Never: [] } as object }, 'hooks.Never is not a point'],
    ['a misspelt option', { ...options, permisionMode: 'plan' } as QueryOptions, 'did you mean permissionMode?'],
    ['a name of the wire', { ...options, max_steps: 3 } as QueryOptions, 'did you mean maxSteps?'],
    ['a preset of another agent', { ...options, systemPrompt: PRESET }, 'which has no presets'],
    ['two names of one option', { ...options, maxTurns: 1, maxSteps: 2 }, 'maxTurns and maxSteps are the same option'],
    ['an option of another SDK', { ...options, persistSession: false } as QueryOptions, 'sessions().delete(id)'],
    ['an option like one of another SDK', { ...options, maxTurn: 1 } as QueryOptions, 'did you mean maxTurns?'],
    ['text for a list', { ...options, allowedTools: 'Bash' as never }, 'allowedTools must be a list of texts'],
    ['a schema of zod 3', { ...options, outputSchema: { _def: {} } }, 'must be a schema of zod 4'],
    ['a list for a matcher', { ...options, hooks: { Stop: {} as never } }, 'hooks.Stop must be a list'],
    ['a misspelt failure of a hook', hooked({ onFailure: 'blok' }), 'hooks.PreToolUse: onFailure: Invalid option'],
    ['milliseconds for a hook', hooked({ timeout: 30_000 }), 'hooks.PreToolUse: timeout: Too big'],
    ['an expression for a matcher', hooked({ matcher: /Bash/ }), 'hooks.PreToolUse: matcher: Invalid input'],
    ['an address without http', { server: { baseUrl: 'localhost:8000' } }, 'must be an http or https URL'],
    ['an unknown tool', { ...options, tools: ['Hammer'] }, 'is not a tool of this server'],
  ])('with %s is an error that says what to do', async (_what, wrong, message) => {
    await expect(run({ prompt: 'x', options: wrong })).rejects.toThrow(message)
  })

  test('of a model that refuses the key is an outcome that says what to do', async () => {
    const outcome = await run({ prompt: 'refuse', options })
    expect(outcome).toMatchObject({
      stopReason: 'error',
      error: { type: 'auth', message: expect.stringContaining('llm_config.api_key') },
    })
  })
})

describe('permissions', () => {
  const asked = { ...options, tools: ['Bash'] }
  const byFunction = { ...asked, permissionMode: 'callback' as const }

  test('an approver that fails, or returns something else, denies', async () => {
    const approvers: [() => never, string][] = [
      [
        () => {
          throw new Error('no approver today')
        },
        'no approver today',
      ],
      [() => ({}) as never, 'it returned neither'],
      [() => ({ behavior: 'deny', message: 'x'.repeat(10_001) }) as never, 'a wrong message: Too big'],
      [() => ({ behavior: 'allow', updatedInput: CIRCULAR }) as never, 'circular'],
      [() => ({ behavior: 'allow', updatedInput: { no: 'command' } }) as never, 'do not fit Bash'],
    ]
    for (const [canUseTool, why] of approvers) {
      const { events } = await run({
        prompt: 'call Bash {"command": "mkdir a"}',
        options: { ...byFunction, canUseTool },
      })
      expect(events.find((event) => event.type === 'ToolResult')).toMatchObject({
        error_type: 'denied',
        error_message: expect.stringContaining(why),
      })
    }
  })

  test('an approver that denies and interrupts ends the run with its reason', async () => {
    const canUseTool = () => ({ behavior: 'deny', message: 'never', interrupt: true }) as const
    const { events, stopReason } = await run({
      prompt: 'call Bash {"command": "mkdir a"}',
      options: { ...byFunction, canUseTool },
    })
    expect(stopReason).toBe('paused')
    expect(decisionsIn(events)[0]).toMatchObject({ message: 'never' })
    expect(events.filter((event) => event.type === 'AssistantMessage')).toHaveLength(1)
  })

  test('without an approver the query ends, and another one decides', async () => {
    const waiting = { ...asked, permissionMode: 'default' as const }
    const first = await run({ prompt: 'call Bash {"command": "mkdir a"}', options: waiting })
    expect(first).toMatchObject({ stopReason: 'waiting_for_confirmation', finalText: '' })
  })

  test('a terminal is asked: y, n with a reason, and always', async () => {
    const input = new PassThrough()
    const output = new PassThrough({ encoding: 'utf8' })
    const interactiveApprover = { input, output }
    const ask = async (answer: string, resume?: string) => {
      output.on('data', function answerOnce(text: string) {
        if (!text.includes('Allow?')) return
        output.off('data', answerOnce)
        input.write(`${answer}\n`)
      })
      const changes = resume === undefined ? asked : { ...options, resume }
      const command = { command: `mkdir made-${answer.replaceAll(' ', '-')}` }
      const prompt = `call Bash ${JSON.stringify(command)}`
      return await run({ prompt, options: { ...changes, interactiveApprover } })
    }
    const { events, sessionId } = await ask('not here')
    expect(events.find((event) => event.type === 'ToolResult')).toMatchObject({
      error_message: expect.stringContaining('The user said: not here'),
    })
    expect((await ask('y', sessionId)).finalText).toBe('It said: [no output]')
    await ask('always', sessionId)
    const again = await run({
      prompt: 'call Bash {"command": "mkdir made-always"}',
      options: { ...options, resume: sessionId },
    })
    expect(openedIn(again.events, 'permission')).toEqual([])
  })
})

describe('hooks that are functions', () => {
  test('decide about calls, change them and see their results; a failure blocks', async () => {
    const seen: string[] = []
    const hooked: QueryOptions = {
      ...options,
      tools: ['Bash'],
      hooks: {
        PreToolUse: [
          {
            matcher: 'Bash',
            hooks: [
              ({ tool_input: input }, toolUseId) => {
                seen.push(`${toolUseId === undefined}`)
                const { command } = input as { command: string }
                if (command === 'fail') throw new Error('out of order')
                if (command === 'circular') return CIRCULAR
                return {
                  hookSpecificOutput: { hookEventName: 'PreToolUse', updatedInput: { command: 'echo changed' } },
                }
              },
            ],
          },
        ],
        PostToolUse: [{ hooks: [() => void seen.push('after')] }],
      },
    }
    const { events, finalText, sessionId } = await run({
      prompt: 'call Bash {"command": "echo hello"}',
      options: hooked,
    })
    expect(finalText).toContain('changed')
    expect(seen).toEqual(['false', 'after'])
    expect(typesIn(events).filter((type) => type === 'HookEvent')).toHaveLength(2)
    const later = { ...options, hooks: hooked.hooks, resume: sessionId }
    for (const command of ['fail', 'circular']) {
      const failed = await run({ prompt: `call Bash {"command": "${command}"}`, options: later })
      expect(failed.events.find((event) => event.type === 'ToolResult')).toMatchObject({ error_type: 'denied' })
    }
    const { length } = seen
    await run({ prompt: 'call Bash {"command": "echo x"}', options: { ...options, resume: sessionId } })
    expect(seen, 'of a later query without hooks').toHaveLength(length)
  })

  test('block a message, of which nothing is stored', async () => {
    const hooks = { UserPromptSubmit: [{ hooks: [() => ({ decision: 'block', reason: 'not today' })] }] }
    await expect(run({ prompt: 'x', options: { ...options, hooks } })).rejects.toThrow('not today')
  })
})

test('answers whose response is lost are sent again, and count once', async () => {
  const lost = new Set<unknown>()
  const losing: typeof fetch = async (input, init) => {
    const isAnswer = /\/requests\//.test(input as string) && init?.method === 'POST'
    const kind: unknown = isAnswer ? JSON.parse(init.body as string).kind : undefined
    const isLost = isAnswer && !lost.has(kind)
    if (isLost) lost.add(kind)
    const response = await fetch(input, init)
    if (!isLost) return response
    throw new TypeError('fetch failed')
  }
  const elsewhere = { server: { baseUrl: server.url, apiKey: server.apiKey, fetch: losing } }
  const own = tool('own', 'A tool of this program.', {}, () => 'seventeen')
  const question = { question: 'Which?', header: 'One', options: [{ label: 'A' }, { label: 'B' }], multiSelect: false }
  const answering: QueryOptions = {
    ...options,
    persistDir: undefined,
    ...elsewhere,
    tools: ['AskUserQuestion', own],
    permissionMode: 'default',
    canUseTool: () => ({ behavior: 'allow' }),
    answerQuestions: () => ({ 'Which?': 'B' }),
  }
  const first = await run({ prompt: 'call own', options: answering })
  expect(first.finalText).toBe('It said: seventeen')
  const questions = { questions: [question] }
  const second = await run({ prompt: `call AskUserQuestion ${JSON.stringify(questions)}`, options: answering })
  expect(second.finalText).toContain('B')
  expect([...lost]).toEqual(['permission', 'client_tool', 'question'])
})

test('createServer() has the sessions of query(), which uses it', async () => {
  const { sessionId } = await run({ prompt: 'hello', options })
  expect((await server.client.conversation(sessionId).get()).status).toBe('idle')
  const ended: unknown[] = []
  const hooks = { Stop: [{ hooks: [() => void ended.push('by a function')] }] }
  await run({ prompt: 'hello', options: { ...options, hooks } })
  expect(ended).toEqual(['by a function'])
  await expect(createServer({ persistDir })).rejects.toThrow('in use')
})

test('sessions are listed, read, exported, forked, continued and deleted', async () => {
  const place = { persistDir: join(stage.home, 'sessions') }
  const all = sessions(place)
  const { sessionId, events } = await run({ prompt: 'hello', options: { ...options, ...place } })
  expect(await Array.fromAsync(all.read(sessionId))).toEqual(events)
  const lines = (await Array.fromAsync(all.export(sessionId))).join('').trimEnd().split('\n')
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual(events)
  const { id } = await all.fork(sessionId)
  const resumed = await eventsOf(all.resume(id, 'once more'))
  expect(textsIn(resumed)).toEqual(['once more'])
  const newest = await run({ prompt: 'newest', options: { ...place, continue: true } })
  expect(newest.sessionId).toBe(id)
  const forked = await run({ prompt: 'fork', options: { ...place, fork: sessionId } })
  expect([sessionId, id]).not.toContain(forked.sessionId)
  await all.delete(sessionId)
  const left = await Array.fromAsync(all.list())
  expect(left.map((each) => each.id).toSorted()).toEqual([id, forked.sessionId].toSorted())
})
