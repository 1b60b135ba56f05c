/** Calls of one turn that change nothing run at the same time; all others run in order. */
import { describe, expect, test } from 'vitest'
import { ToolCalls } from '../../src/agent/tool-calls.ts'
import type { EventDraft } from '../../src/contract/events/event.ts'
import { createRedactor } from '../../src/security/redaction/redactor.ts'
import type { Script } from '../../src/llm/scripted/script.ts'
import type { Tool } from '../../src/tools/tool.ts'
import type { Gate } from '../conversations/fixtures.ts'
import { call, endOf, eventsOf, gate, only, setBench, tool, userText } from '../conversations/fixtures.ts'

const reading = (name: string): Gate => {
  const slow = gate(name)
  return { ...slow, tool: { ...slow.tool, readOnly: true } }
}

/** The names of the calls in the order of their results. */
async function resultsOf(conversation: Parameters<typeof eventsOf>[0]) {
  const events = await eventsOf(conversation)
  const names = new Map(only(events, 'ToolUse').map((use) => [use.tool_use_id, use.name]))
  return only(events, 'ToolResult').map((result) => names.get(result.tool_use_id))
}

const runOf = (accepted: object) => (accepted as { run_id: string }).run_id

test('readers of one turn run at the same time; each result is stored when it is there, and the model reads them in the order of the calls', async () => {
  const [a, b] = [reading('A'), reading('B')]
  let read: unknown[] = []
  const script: Script = ({ messages }) => {
    read = messages.filter(({ role }) => role === 'tool').map(({ content }) => content)
    return read.length === 0 ? { calls: [call('A'), call('B')] } : { text: 'Done.' }
  }
  await using bench = await setBench({ tools: [a.tool, b.tool], script })
  const conversation = await bench.converse()
  const accepted = await conversation.post(userText('Go.', true))
  await Promise.all([a.entered, b.entered])
  b.open('second')
  await expect.poll(() => resultsOf(conversation)).toEqual(['B'])
  a.open('first')
  await endOf(conversation, runOf(accepted))
  expect(await resultsOf(conversation)).toEqual(['B', 'A'])
  expect(read).toEqual(['first', 'second'])
})

test('a call that may change something begins after those before it, and ends before those behind it', async () => {
  const [first, writer, last] = [reading('First'), gate('Writer'), reading('Last')]
  const script = [{ calls: [call('First'), call('Writer'), call('Last')] }, { text: 'Done.' }]
  await using bench = await setBench({ tools: [first.tool, writer.tool, last.tool], script })
  const conversation = await bench.converse()
  const accepted = await conversation.post(userText('Go.', true))
  await first.entered
  expect(writer.calls() + last.calls()).toBe(0)
  first.open()
  await writer.entered
  expect(last.calls()).toBe(0)
  writer.open()
  last.open()
  await endOf(conversation, runOf(accepted))
  expect(await resultsOf(conversation)).toEqual(['First', 'Writer', 'Last'])
})

test('calls of subagents run at the same time, and a call behind them begins when they have ended', async () => {
  const subagent = (name: string): Gate => {
    const slow = gate(name)
    return { ...slow, tool: { ...slow.tool, callsSubagent: true } }
  }
  const [one, two, writer] = [subagent('One'), subagent('Two'), gate('Writer')]
  const script = [{ calls: [call('One'), call('Two'), call('Writer')] }, { text: 'Done.' }]
  await using bench = await setBench({ tools: [one.tool, two.tool, writer.tool], script })
  const conversation = await bench.converse()
  const accepted = await conversation.post(userText('Go.', true))
  await Promise.all([one.entered, two.entered])
  expect(writer.calls()).toBe(0)
  for (const { open } of [one, two, writer]) open()
  await endOf(conversation, runOf(accepted))
  expect((await resultsOf(conversation)).at(-1)).toBe('Writer')
})

test('at most eight run at the same time', async () => {
  let [active, most] = [0, 0]
  const slow = tool(
    'Slow',
    async () => {
      most = Math.max(most, ++active)
      await new Promise((resolve) => setImmediate(resolve))
      active--
      return { output: '' }
    },
    { readOnly: true },
  )
  const script = [{ calls: Array.from({ length: 20 }, () => call('Slow')) }, { text: 'Done.' }]
  await using bench = await setBench({ tools: [slow], script })
  const conversation = await bench.converse()
  await endOf(conversation, runOf(await conversation.post(userText('Go.', true))))
  expect(most).toBe(8)
  expect(await resultsOf(conversation)).toHaveLength(20)
})

describe('a pause', () => {
  test('leaves all of them running, and the next run waits for them and repeats none', async () => {
    const [a, b] = [reading('A'), reading('B')]
    const script = [{ calls: [call('A'), call('B'), call('A')] }, { text: 'Done.' }]
    await using bench = await setBench({ tools: [a.tool, b.tool], script })
    const conversation = await bench.converse()
    await conversation.post(userText('Go.', true))
    await Promise.all([a.entered, b.entered])
    expect(await conversation.pause({ interrupt: false })).toBe('paused')
    const resumed = await conversation.run()
    b.open()
    a.open()
    await endOf(conversation, resumed)
    expect(new Set(await resultsOf(conversation))).toEqual(new Set(['A', 'B']))
    expect(await resultsOf(conversation)).toHaveLength(3)
    expect([a.calls(), b.calls()]).toEqual([2, 1])
  })

  test('that interrupts ends all of them, in order', async () => {
    const [a, b] = [reading('A'), reading('B')]
    const script = [{ calls: [call('A'), call('B')] }]
    await using bench = await setBench({ tools: [a.tool, b.tool], script })
    const conversation = await bench.converse()
    await conversation.post(userText('Go.', true))
    await Promise.all([a.entered, b.entered])
    await conversation.pause({ interrupt: true })
    expect(await resultsOf(conversation)).toEqual(['A', 'B'])
    const results = only(await eventsOf(conversation), 'ToolResult')
    expect(results.map(({ error_type }) => error_type)).toEqual(['interrupted', 'interrupted'])
  })
})

test('in confirmation mode they wait for a decision as others do', async () => {
  const a = reading('A')
  await using bench = await setBench({ tools: [a.tool], script: [{ calls: [call('A'), call('A')] }] })
  const conversation = await bench.converse({ confirmation_mode: true })
  const accepted = await conversation.post(userText('Go.', true))
  await expect.poll(() => conversation.state.status).toBe('waiting_for_confirmation')
  expect(a.calls()).toBe(0)
  expect(runOf(accepted)).toBeDefined()
})

test('a call that a rule denies does not run next to those that do', async () => {
  const [a, b] = [reading('A'), reading('B')]
  const script = [{ calls: [call('A'), call('B'), call('A')] }, { text: 'Done.' }]
  await using bench = await setBench({ tools: [a.tool, b.tool], script })
  const conversation = await bench.converse({ permission_mode: 'bypass', permission_rules: { deny: ['B'] } })
  a.open()
  await endOf(conversation, runOf(await conversation.post(userText('Go.', true))))
  expect(new Set(await resultsOf(conversation))).toEqual(new Set(['A', 'B']))
  expect(await resultsOf(conversation)).toHaveLength(3)
  const denied = only(await eventsOf(conversation), 'ToolResult').filter(({ is_error }) => is_error)
  expect(denied).toMatchObject([{ error_type: 'denied' }])
  expect(b.calls()).toBe(0)
})

test('when a result cannot be stored, those behind it wait, and none runs a second time', async () => {
  const stored: EventDraft[] = []
  let fails = true
  const [a, b] = [reading('A'), reading('B')]
  const toolCalls = new ToolCalls({
    tools: [a.tool, b.tool] satisfies Tool[],
    context: () => ({ conversationId: 'c', workdir: '/work', openRequest: async () => undefined }),
    redactor: createRedactor(),
    emit: async (drafts) => {
      if (fails) throw new Error('there is no room')
      stored.push(...drafts)
    },
    adviceFor: () => undefined,
    onOutput: () => {},
    onCrash: () => {},
  })
  const calls = ['A', 'B'].map((name) => ({ toolUseId: name, name, input: {}, runId: 'run' }))
  a.open()
  b.open()
  await expect(toolCalls.runInParallel(calls)).rejects.toThrow('no room')
  expect(stored).toEqual([])
  fails = false
  await toolCalls.runInParallel(calls)
  expect(stored.map((draft) => 'tool_use_id' in draft && draft.tool_use_id)).toEqual(['A', 'B'])
  expect([a.calls(), b.calls()]).toEqual([1, 1])
})
