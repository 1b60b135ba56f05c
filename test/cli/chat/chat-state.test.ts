/** What the chat makes of events, without a terminal. */
import * as fc from 'fast-check'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { withImages } from '../../../src/cli/chat/input/images.ts'
import { approvalLines, editableText, editedInput } from '../../../src/cli/chat/input/approval-text.ts'
import { linesOfItem } from '../../../src/cli/chat/render/item-lines.ts'
import { StreamedMarkdown } from '../../../src/cli/chat/render/streamed-markdown.ts'
import { createTheme } from '../../../src/cli/chat/render/theme.ts'
import type { ChatState, Item } from '../../../src/cli/chat/state/chat-state.ts'
import { EMPTY_STATE } from '../../../src/cli/chat/state/chat-state.ts'
import { cleanText, revealText } from '../../../src/cli/chat/state/clean-text.ts'
import { diffOfCall } from '../../../src/cli/chat/state/diff.ts'
import type { Starts } from '../../../src/cli/chat/state/diff-numbers.ts'
import { filesToSearch, numberedLines, startsIn, startsInResult } from '../../../src/cli/chat/state/diff-numbers.ts'
import type { ChatEvent } from '../../../src/cli/chat/state/reduce.ts'
import { reduce } from '../../../src/cli/chat/state/reduce.ts'
import { messageOfCommand, typedMessage } from '../../../src/cli/chat/state/shell-command.ts'
import { visibleWidth } from '@earendil-works/pi-tui'
import { effort } from '../../support/patience.ts'

const theme = createTheme(false)

const fold = (events: readonly object[], state: ChatState = { ...EMPTY_STATE, isLive: true }): ChatState =>
  events.reduce<ChatState>((before, event) => reduce(before, event as ChatEvent, 0), state)

const texts = ({ items }: ChatState) =>
  items.map((item) => (item.kind === 'answer' ? item.parts.join('') : item.kind === 'call' ? item.name : item.text))

const delta = (text_delta: string, offset: number, message_id = 'm') => ({
  type: 'AssistantDelta',
  message_id,
  index: 0,
  offset,
  text_delta,
})

describe('events', () => {
  test('a conversation is called as it begins, until somebody gives it a title', () => {
    const message = (text: string) => ({ type: 'UserMessage', content: [{ type: 'text', text }] })
    const place = { ...EMPTY_STATE, title: 'project' }
    expect(fold([message('\n')], place).title).toBe('project')
    const begun = fold([message(' Fix\x1b[2J\n the   test '), message('Thanks.')], place)
    expect(begun.title).toBe('Fix the test')
    expect(
      fold([message(messageOfCommand('ls', { stdout: '', stderr: '', status: 'exited' } as never))], place).title,
    ).toBe('! ls')
    const titled = fold([{ type: 'ConfigUpdate', changes: { title: 'Tests' } }, message('Go on.')], begun)
    expect(titled.title).toBe('Tests')
  })

  test('a piece that arrives again after a reconnection is not shown twice, and the final text replaces all', () => {
    expect(texts(fold([delta('Hello', 0), delta('Hello wor', 0), delta('ld', 9)]))).toEqual(['Hello world'])
    const usage = { input_tokens: 1, output_tokens: 2, cached_tokens: 0, reasoning_tokens: 0 }
    const final = { type: 'AssistantMessage', message_id: 'm', text: 'Hello, world', model: 'x', usage, cost_usd: 0.5 }
    const state = fold([delta('Hello', 0), final])
    expect([texts(state), state.usage, state.costUsd]).toEqual([['Hello, world'], { x: usage }, 0.5])
  })

  test('rules that were remembered are shown once, and other changes of rules as such', () => {
    const update = (allow: string[]) => ({
      type: 'ConfigUpdate',
      changes: { permission_rules: { allow, ask: [], deny: [] } },
    })
    expect(texts(fold([update(['Read']), update(['Read', 'Bash(ls)']), update([])]))).toEqual([
      'Allowed in this conversation from now on: Read',
      'Allowed in this conversation from now on: Bash(ls)',
      'The permission rules changed; /permissions lists them.',
    ])
  })

  test('a command of the person is shown once when the conversation is read again, and by its text in lists', () => {
    const outcome = { stdout: 'hi\n', stderr: '', status: 'exited', exit_code: 0, killed_by: null } as const
    const text = messageOfCommand('echo hi', outcome as never) // the rest is not read
    const ended = { type: 'CommandResult', command_id: 'c', command: 'echo hi', ...outcome }
    const message = { type: 'UserMessage', id: 'm', seq: 2, content: [{ type: 'text', text }] }
    expect(fold([ended, message]).items).toMatchObject([{ kind: 'call', name: '!', input: { command: 'echo hi' } }])
    expect([typedMessage(text), typedMessage(text.slice(0, 90)), typedMessage('hello')]).toEqual([
      '! echo hi',
      expect.stringMatching(/^! ech/),
      'hello',
    ])
  })

  test('what a failed attempt has written is removed', () => {
    const call = {
      type: 'AssistantDelta',
      message_id: 'm',
      index: 0,
      offset: 0,
      tool_input_delta: '{',
      tool_use_id: 'c',
      tool_name: 'Bash',
    }
    expect(fold([delta('Hel', 0), call, { type: 'AssistantAborted', message_id: 'm' }]).items).toEqual([])
  })

  test('what others have decided is news while the chat is open, and not when it is read again', () => {
    const call = { tool_use_id: 'c', name: 'Bash', input: {}, input_hash: '', reason: '' }
    const events = [
      {
        type: 'RequestOpened',
        kind: 'permission',
        request_id: 'r',
        tool_use_ids: ['c'],
        payload: { tool_uses: [call] },
      },
      {
        type: 'RequestAnswered',
        kind: 'permission',
        request_id: 'r',
        tool_use_ids: ['c'],
        answer: { decisions: [{ tool_use_id: 'c', input_hash: '', behavior: 'deny' }] },
        answered_by: 'user',
      },
    ]
    expect(texts(fold(events))).toEqual(['Bash was denied in another client.'])
    expect(texts(fold([events[0]!, { type: 'Answered', id: 'r c' }, events[1]!]))).toEqual([])
    expect(texts(fold(events, EMPTY_STATE))).toEqual([])
    expect(fold(events).requests).toEqual([])
  })

  test('a model that uses the id of a call again makes another call, which is asked about again', () => {
    const call = { type: 'ToolUse', tool_use_id: 'c', name: 'Bash', input: {} }
    const result = { type: 'ToolResult', tool_use_id: 'c', output: 'one', is_error: false, duration_ms: 1 }
    expect(texts(fold([call, result, call]))).toEqual(['Bash', 'Bash'])
    const asked = (request_id: string) => ({
      type: 'RequestOpened',
      kind: 'permission',
      request_id,
      tool_use_ids: ['c'],
      payload: { tool_uses: [{ ...call, reason: '' }] },
    })
    const { requests, answeredHere } = fold([asked('one'), { type: 'Answered', id: 'one c' }, asked('two')])
    expect([requests.map(({ request_id }) => request_id), [...answeredHere]]).toEqual([['one', 'two'], ['one c']])
  })

  test('a long conversation keeps its end', () => {
    const state = fold(Array.from({ length: 2000 }, (_, at) => ({ type: 'Notice', tone: 'info', text: String(at) })))
    expect(state.items.length).toBeLessThan(700)
    expect(texts(state)[0]).toBe('Earlier parts of this conversation are not shown.')
    expect(texts(state).at(-1)).toBe('1999')
  })

  test('a message is shown while it is sent, marked if that failed, and replaced by the stored one', () => {
    const sending = { type: 'Sending', key: 'k', text: 'hi', images: 0 }
    const stored = { type: 'UserMessage', content: [{ type: 'text', text: 'hi' }], run: true, idempotency_key: 'k' }
    const deliveries = (events: object[]) =>
      fold(events).items.map((item) => (item.kind === 'user' ? [item.text, item.delivery] : item.kind))
    expect(deliveries([sending])).toEqual([['hi', 'sending']])
    expect(deliveries([sending, { type: 'Sent', key: 'k' }])).toEqual([['hi', undefined]])
    expect(deliveries([sending, { type: 'NotSent', key: 'k' }])).toEqual([['hi', 'failed']])
    expect(deliveries([sending, { type: 'NotSent', key: 'k' }, sending, stored])).toEqual([['hi', undefined]])
    expect(deliveries([sending, stored, { type: 'Sent', key: 'k' }])).toEqual([['hi', undefined]])
  })

  test('a connection that is lost again and again leaves one line', () => {
    const change = (isConnected: boolean) => ({ type: 'Connection', isConnected, reason: 'why' })
    const [lost, back] = [change(false), change(true)]
    expect(texts(fold([lost]))).toEqual(['The connection to the server is lost; connecting again. why'])
    expect(texts(fold([lost, back, lost, back]))).toEqual(['The connection was lost. Connected again.'])
  })

  test('what happens without the model has a line', () => {
    const start = { type: 'SubagentStart', agent_name: 'reviewer', description: 'Reads the code' }
    const end = { type: 'Result', parent_tool_use_id: 'c', agent_name: 'reviewer', stop_reason: 'completed', steps: 3 }
    const retry = { type: 'ModelRetry', message_id: 'm', error_type: 'network', retry: 1, max_retries: 3, wait_ms: 5 }
    const task = { type: 'TaskUpdate', task_id: 't', title: 'Tests', status: 'running' }
    const mcp = { type: 'McpServerUpdate', server: 'git', status: 'needs_auth', tools: 0 }
    const shown = texts(
      fold([
        start,
        { ...end, duration_ms: 5 },
        { ...retry, message: 'reset', next_model: 'other' },
        task,
        { ...task, progress: { done: 1, total: 2 } },
        { ...mcp, authorization_url: 'https://example.com/auth' },
        { type: 'ConfigUpdate', changes: { permission_mode: 'plan' } },
        { type: 'ConfigUpdate', changes: { permission_mode: 'plan', title: 'A title' } },
        { type: 'NetworkAccess', host: 'example.com', allowed: false, reason: 'policy', count: 2 },
      ]),
    )
    expect(shown).toEqual([
      'reviewer begins: Reads the code',
      'reviewer is done: completed after 3 steps, 5 ms',
      'model request failed (network), retry 1 of 3 in 5 ms with other: reset',
      'task t: running (Tests)',
      'MCP server git: needs_auth (https://example.com/auth)',
      'The permission mode changed from bypass to plan.',
      'network: refused example.com 2 times (policy)',
    ])
    const waiting = {
      type: 'RequestOpened',
      kind: 'client_tool',
      request_id: 'r',
      tool_use_ids: ['c'],
      payload: { name: 'look_up', input: {} },
    }
    const call = { type: 'ToolUse', tool_use_id: 'c', name: 'look_up', input: {} }
    const result = { type: 'ToolResult', tool_use_id: 'c', output: 'x', is_error: false, duration_ms: 1 }
    const notes = (events: object[]) => fold(events).items.map((item) => (item.kind === 'call' ? item.note : item.kind))
    expect(notes([call, waiting])).toEqual(['waits for a client that executes it'])
    expect(notes([call, waiting, result])).toEqual([undefined])
  })

  test('events of later versions are ignored', () => {
    expect(fold([{ type: 'SomethingNew', text: 'x' }])).toEqual({ ...EMPTY_STATE, isLive: true })
  })
})

describe('texts', () => {
  const hostile = fc.string({
    unit: fc.constantFrom(
      '\x1b',
      '[',
      ']',
      '5',
      '2',
      ';',
      'm',
      'J',
      '\x07',
      '\\',
      '\r',
      '\n',
      '\t',
      '\x9b',
      '\u202e',
      '\u200b',
      '\ud800',
      'P',
      '_',
      'a',
      '世',
      '🎉',
      ' ',
      '|',
      '`',
      '*',
      '#',
      '-',
      '<',
    ),
    maxLength: 60,
  })
  // oxlint-disable-next-line no-control-regex -- what must not be there
  const CONTROLS = /[\0-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/

  // oxlint-disable-next-line no-control-regex -- what the chat may write
  const STYLES = /\x1b\[[\d;]*m/g

  test('nothing that a terminal obeys is left of them', () => {
    fc.assert(
      fc.property(hostile, (text) => {
        expect(cleanText(text)).not.toMatch(CONTROLS)
        expect(revealText(text)).not.toMatch(CONTROLS)
      }),
      { numRuns: effort(150, 20_000) },
    )
  })

  test('what is approved loses no character', () => {
    const restore = (text: string) =>
      text.replaceAll(/<U\+([0-9A-F]+)>/g, (_, code: string) => String.fromCodePoint(parseInt(code, 16)))
    const untabbed = hostile.filter((text) => !text.includes('\t') && !text.includes('<'))
    fc.assert(
      fc.property(untabbed, (text) => {
        expect(restore(revealText(text))).toBe(text)
      }),
      { numRuns: effort(150, 20_000) },
    )
  })

  test('an unfinished sequence hides no text behind it', () => {
    expect(cleanText('a\x1b]0;title\nb\x1bPdata\nc')).toBe('a]0;title\nbPdata\nc')
  })

  test('no line is wider than the terminal, and none has a control character', () => {
    const items = hostile.map((text): Item[] => [
      { kind: 'user', text, images: 1, sender: text },
      { kind: 'answer', messageId: 'm', parts: [text], isReasoning: false, isComplete: true },
      { kind: 'call', id: 'c', name: text, input: { command: text }, written: 0, output: text },
      {
        kind: 'call',
        id: 'c',
        name: 'Edit',
        input: { old_string: text, new_string: `${text}\nx` },
        written: 0,
        output: '',
        result: { text, isError: false, durationMs: 1 },
      },
      { kind: 'notice', tone: 'error', text },
    ])
    fc.assert(
      fc.property(items, fc.integer({ min: 1, max: 70 }), (all, width) => {
        const draw = (item: Item) =>
          linesOfItem(item, { width, theme, isExpanded: true, streamed: new StreamedMarkdown() })
        const isWrong = (line: string) => visibleWidth(line) > width || CONTROLS.test(line.replaceAll(STYLES, ''))
        expect(all.flatMap(draw).filter(isWrong)).toEqual([])
      }),
      { numRuns: effort(60, 3000) },
    )
  })
})

test('Markdown that grows looks like the whole, and finished blocks are not drawn again', () => {
  const block = (at: number) => `Text ${at} with **bold**:\n\n- one\n- two\n\n\`\`\`js\na\n\nb ${at}\n\`\`\`\n\n`
  const whole = Array.from({ length: 200 }, (_, at) => block(at)).join('')
  const streamed = new StreamedMarkdown()
  const draw = (text: string, isComplete: boolean) =>
    linesOfItem(
      { kind: 'answer', messageId: 'm', parts: [text], isReasoning: false, isComplete },
      { width: 80, theme, isExpanded: false, streamed },
    )
  for (let end = 100; end < whole.length; end += 100) draw(whole.slice(0, end), false)
  expect(draw(whole, false)).toEqual(draw(whole, true))
  let drawn = 0
  const count = (text: string) => [String((drawn += text.length))]
  for (let end = 100; end < whole.length; end += 100) streamed.lines('n', whole.slice(0, end), 80, count)
  expect(drawn).toBeLessThan(whole.length * 40)
})

describe('calls', () => {
  test('edits are diffs of what changes', () => {
    const lines = (input: unknown) => diffOfCall(input)?.lines.map(({ sign, text }) => sign + text)
    expect(lines({ old_string: 'a\nb\nc\n', new_string: 'a\nX\nc\n' })).toEqual([' a', '-b', '+X', ' c'])
    expect(lines({ path: 'f', file_text: 'one\ntwo' })).toEqual(['+one', '+two'])
    expect(lines({ old_string: 'a', new_string: 'a\n' })).toEqual([' a', '@The newline at the end is added.'])
    expect(lines({ edits: [{ old_string: 'a', new_string: 'b', replace_all: true }] })).toEqual([
      '@edit 1 {"replace_all":true}',
      '-a',
      '+b',
    ])
    expect(lines({ input: '*** Begin Patch\n+x\n*** End Patch' })).toEqual(['@*** Begin Patch', '+x', '@*** End Patch'])
    expect(lines({ command: 'ls' })).toBeUndefined()
  })

  test('an edit has the numbers of its lines, from its input, its result or its file', () => {
    const shown = (input: unknown, starts: Starts) =>
      numberedLines(input, starts).map(({ sign, text, line = '' }) => `${line}${sign}${text}`)
    const edit = { path: 'f', old_string: 'b\nc\n', new_string: 'B\nc\nd\n' }
    const file = 'a\nb\nc\ne\n'
    const inFile = (path: string) => (path === 'f' ? file : undefined)
    expect(filesToSearch(edit)).toEqual(new Set(['f']))
    expect(shown(edit, startsIn(edit, inFile, 'before'))).toEqual(['2-b', '2+B', '3 c', '4+d'])
    const result = `Edited:\n${['c', '', '', 'x', 'B', 'c', 'd', 'e'].map((text, at) => `    ${at + 7}\t${text}`).join('\n')}`
    expect(shown(edit, startsInResult(edit, result))).toEqual(['11-b', '11+B', '12 c', '13+d'])
    expect(shown({ path: 'n', content: 'x\ny' }, [])).toEqual(['1+x', '2+y'])
    expect(shown({ command: 'insert', path: 'f', insert_line: 3, new_str: 'x' }, [])).toEqual(['4+x'])
    const patch = {
      input: '*** Begin Patch\n*** Add File: n\n+x\n*** Update File: f\n@@\n+A\n a\n@@\n c\n-e\n*** End Patch',
    }
    const numbered = ['1+x', '1+A', '2 a', '4 c', '4-e']
    const lines = (starts: Starts) => shown(patch, starts).filter((line) => !line.startsWith('@'))
    expect(lines(startsIn(patch, inFile, 'before'))).toEqual(numbered)
    expect(lines(startsIn(patch, () => 'A\na\nb\nc\n', 'after'))).toEqual(numbered)
    expect(lines([])).toEqual(['1+x', '+A', ' a', ' c', '-e'])
  })

  test('an approval shows every field', () => {
    const input = {
      command: 'create',
      path: '/x',
      file_text: 'text',
      old_str: 'a',
      new_str: 'b',
      nested: { deep: '\u202e' },
    }
    const shown = approvalLines(
      { tool_use_id: 'c', name: 'E', input, input_hash: '', reason: 'why', rules: ['Edit(/x)'] },
      { width: 80, theme },
    ).join('\n')
    for (const part of ['create', 'path: /x', 'file_text: text', '- a', '+ b', '\\u202e', 'why', 'Edit(/x)'])
      expect(shown).toContain(part)
  })

  test('a command is edited as it is, and what the prompt would change as JSON', () => {
    const call = (input: unknown) => ({ tool_use_id: 'c', name: 'Bash', input, input_hash: '', reason: '' })
    expect(editableText(call({ command: 'ls', timeout: 5 }))).toBe('ls')
    expect(editedInput(call({ command: 'ls', timeout: 5 }), 'ls -l')).toEqual({ command: 'ls -l', timeout: 5 })
    const tabbed = call({ command: 'cat <<E\n\ttext\nE' })
    expect(editedInput(tabbed, editableText(tabbed))).toEqual(tabbed.input)
    expect(() => editedInput(tabbed, '[]')).toThrow('must be a JSON object')
  })
})

test('images are attached by their path, and not by a name in a sentence', async () => {
  await using temporary = await mkdtempDisposable(join(tmpdir(), 'chat-images-'))
  const directory = temporary.path
  await writeFile(join(directory, 'a b.png'), '\x89PNG\r\n', 'latin1')
  await writeFile(join(directory, 'text.png'), 'text')
  const { parts, notes } = await withImages(
    'see ./a\\ b.png, ./a\\ b.png and "./text.png" and ./none.png, not logo.png',
    directory,
  )
  expect(parts.map(({ type }) => type)).toEqual(['text', 'image'])
  expect(notes).toEqual([
    'Attached ./a b.png.',
    './text.png is not attached: it is not a PNG, JPEG, GIF or WebP image.',
    './none.png is not attached: there is no such file.',
  ])
})
