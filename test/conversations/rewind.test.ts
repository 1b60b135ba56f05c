import { describe, expect, test } from 'vitest'
import { ForkConversation } from '../../src/contract/conversation.ts'
import type { RewindRequest } from '../../src/contract/rewind.ts'
import type { Conversation } from '../../src/conversations/conversation.ts'
import type { Script } from '../../src/llm/scripted/script.ts'
import type { Bench, BenchOptions } from './fixtures.ts'
import { call, endOf, eventsOf, gate, only, realShells, say, setBench, tool, until, userText } from './fixtures.ts'
import { mortalStore } from './mortal-store.ts'

const GONE = 'what was rewound'
/** Long enough to be compacted. */
const LONG = 'long '.repeat(2000)

const setScene = (options: BenchOptions = {}) =>
  setBench({ ...options, deps: { createShells: realShells(), ...options.deps } })

const rewind = (conversation: Conversation, to_seq: number, more: Partial<RewindRequest> = {}) =>
  conversation.rewind({ to_seq, last_seq: conversation.log.head, ...more }, {})

/** The messages of each request, as text. */
const requestsOf = ({ model }: Bench) => model.requests.map(({ body }) => JSON.stringify(body.messages))

const lastRequest = (bench: Bench) => requestsOf(bench).at(-1)!

/** A conversation that went back to the end of its first run. */
async function setRewound(bench: Bench): Promise<{ conversation: Conversation; end: number; seq: number }> {
  const conversation = await bench.converse()
  await say(conversation, 'the first')
  const end = conversation.log.head
  await say(conversation, GONE)
  const { seq } = await rewind(conversation, end)
  return { conversation, end, seq: seq! }
}

describe('after a rewind', () => {
  test('no request has what was rewound, and each has what holds', async () => {
    await using bench = await setScene()
    const { conversation, end, seq } = await setRewound(bench)
    expect(conversation.state.status).toBe('idle')
    await say(conversation, 'the third')
    expect(lastRequest(bench)).toContain('the first')
    expect(lastRequest(bench)).toContain('has taken the conversation back')
    expect(lastRequest(bench)).not.toContain(GONE)
    expect(only(await eventsOf(conversation), 'Rewound')).toMatchObject([{ seq, to_seq: end }])
  })

  test.each(['restart', 'kill'])('no request has it after a %s, in a fork, and after a compaction', async (how) => {
    const logs = mortalStore()
    await using bench = await setScene({ logs })
    const { conversation } = await setRewound(bench)
    await bench.restart(how === 'kill' ? { kill: true, between: logs.die } : {})
    const again = await bench.manager.open(conversation.id)
    await say(again, `after the restart ${LONG}`)
    expect(lastRequest(bench)).toContain('the first')
    const { id } = await bench.manager.fork(again.id, ForkConversation.parse({ workdir: 'share' }))
    await say(await bench.manager.open(id), 'in the fork')
    expect(lastRequest(bench)).toContain('the first')
    await again.compactions.compact({})
    await say(again, 'after the compaction')
    expect(requestsOf(bench).filter((text) => text.includes(GONE))).toHaveLength(1)
  })

  test('what a compaction has forgotten since is read again', async () => {
    await using bench = await setScene()
    const conversation = await bench.converse()
    await say(conversation, 'the first')
    await say(conversation, `the second ${LONG}`)
    const end = conversation.log.head
    await say(conversation, `${GONE} ${LONG}`)
    await conversation.compactions.compact({})
    await say(conversation, 'with a summary')
    expect(lastRequest(bench)).not.toContain('the second')
    await rewind(conversation, end)
    expect(conversation.state.forgotten).toBeUndefined()
    await say(conversation, 'the third')
    expect(lastRequest(bench)).toContain('the second')
    expect(lastRequest(bench)).not.toContain(GONE)
  })

  test('a fork of an event that was rewound continues from there', async () => {
    await using bench = await setScene()
    const { conversation, seq } = await setRewound(bench)
    const { id } = await bench.manager.fork(
      conversation.id,
      ForkConversation.parse({ at_seq: seq - 1, workdir: 'share' }),
    )
    await say(await bench.manager.open(id), 'in the fork')
    expect(lastRequest(bench)).toContain(GONE)
  })

  test('a message that was withdrawn stays withdrawn', async () => {
    const work = gate('Work')
    const script: Script = ({ messages }) =>
      messages.some(({ role }) => role === 'tool') ? { text: 'done' } : { calls: [call('Work')] }
    await using bench = await setScene({ script, tools: [work.tool] })
    const conversation = await bench.converse()
    const { event_id, seq } = await conversation.post(userText(GONE))
    await conversation.withdrawals.withdraw(event_id)
    await rewind(conversation, seq)
    work.open()
    await say(conversation, 'now')
    expect(lastRequest(bench)).not.toContain(GONE)
  })

  test('settings, costs and keys of requests are those of now, and the task list is the earlier one', async () => {
    const write = (title: string) => call('TaskTracker', { command: 'plan', task_list: [{ title, status: 'todo' }] })
    const script: Script = ({ text }) => {
      if (text.includes('the second') && !text.includes('late-item')) return { calls: [write('late-item')] }
      return text.includes('early-item') ? { text: 'done' } : { calls: [write('early-item')] }
    }
    const tracker = tool('TaskTracker', ({ task_list }) => ({ output: task_list }))
    await using bench = await setScene({ script, tools: [tracker] })
    const conversation = await bench.converse()
    await say(conversation, 'the first')
    const [end, { lastOutputs }] = [conversation.log.head, conversation.state]
    const key = { key: 'k', bodyHash: 'h' }
    const posted = await conversation.post(userText('the second', true), key)
    await endOf(conversation, posted.run_id!)
    await bench.configure(conversation.id, { max_iteration_per_run: 7 })
    const { usage } = conversation.state
    expect(conversation.state.lastOutputs).not.toEqual(lastOutputs)
    await rewind(conversation, end)
    expect(conversation.state).toMatchObject({ usage, lastOutputs, settings: { max_iteration_per_run: 7 } })
    expect(await conversation.post(userText('the second', true), key)).toEqual(posted)
    await bench.restart()
    expect((await bench.manager.open(conversation.id)).state).toMatchObject({ usage, lastOutputs })
  })

  test('neither the preview nor a generated title has what was rewound', async () => {
    const answer = Promise.withResolvers<{ text: string }>()
    const script: Script = ({ text }) => (text.includes('title') ? answer.promise : { text: 'Hello.' })
    await using bench = await setScene({ script })
    const conversation = await bench.converse({ generate_title: true })
    await say(conversation, GONE)
    await expect.poll(() => bench.model.requests.length).toBe(2)
    await rewind(conversation, 1)
    answer.resolve({ text: GONE })
    await until(conversation, 'ConfigUpdate')
    expect(conversation.state.settings.title).toBeUndefined()
    expect(conversation.state.preview).toBe('')
    await say(conversation, 'the first')
    expect(conversation.state.preview).toBe('the first')
  })
})

describe('a rewind', () => {
  test('can go back behind another one, and not into what it has left', async () => {
    await using bench = await setScene()
    const conversation = await bench.converse()
    const ends = [conversation.log.head]
    for (const text of ['the first', 'the second', GONE]) {
      await say(conversation, text)
      ends.push(conversation.log.head)
    }
    await rewind(conversation, ends[2]!)
    await expect(rewind(conversation, ends[3]! - 1)).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('was rewound'),
      details: { nearest: conversation.log.head },
    })
    await say(conversation, `${GONE}, too`)
    await rewind(conversation, ends[1]!)
    expect(conversation.state.rewound).toHaveLength(1)
    await say(conversation, 'the last')
    expect(lastRequest(bench)).toContain('the first')
    expect(lastRequest(bench)).not.toMatch(/the second|what was rewound/)
  })

  test('goes to the end of a turn or of a message, and names the nearest otherwise', async () => {
    const script: Script = ({ messages }) =>
      messages.some(({ role }) => role === 'tool') ? { text: 'done' } : { calls: [call('Act'), call('Act')] }
    await using bench = await setScene({ script, tools: [tool('Act', () => ({ output: 'acted' }))] })
    const conversation = await bench.converse()
    await say(conversation)
    const events = await eventsOf(conversation)
    const answer = only(events, 'AssistantMessage')[0]!.seq
    const results = only(events, 'ToolResult').map(({ seq }) => seq)
    const nearest = async (seq: number) =>
      await rewind(conversation, seq).then(
        () => 'gone back',
        ({ code, details }: { code: string; details: object }) => ({ code, ...details }),
      )
    expect(await nearest(answer)).toMatchObject({ code: 'invalid_request', nearest: answer - 1 })
    expect(await nearest(results[0]!)).toMatchObject({ code: 'invalid_request', nearest: results[1] })
    expect(await nearest(conversation.log.head + 1)).toMatchObject({ code: 'cursor_ahead' })
    expect(await nearest(results[1]!)).toBe('gone back')
  })

  test('is refused to a client that does not know what others have sent, and so are a run and a message', async () => {
    await using bench = await setScene()
    const { conversation, end, seq } = await setRewound(bench)
    await expect(conversation.rewind({ to_seq: 1, last_seq: end }, {})).rejects.toMatchObject({
      code: 'conversation_changed',
    })
    await expect(conversation.run({ after_seq: seq - 1 })).rejects.toMatchObject({
      code: 'conversation_changed',
      details: { seq },
    })
    const message = { message: { role: 'user', content: 'an answer to what is gone' }, run: true } as const
    await expect(conversation.post({ ...message, after_seq: seq - 1 })).rejects.toMatchObject({
      code: 'conversation_changed',
      details: { seq },
    })
    expect(only(await eventsOf(conversation), 'UserMessage')).toHaveLength(2)
    expect(await conversation.post({ ...message, after_seq: seq })).toMatchObject({ seq: seq + 1 })
  })

  test('changes nothing when it is a dry run', async () => {
    await using bench = await setScene()
    const conversation = await bench.converse()
    await say(conversation)
    const { head } = conversation.log
    const request = { to_seq: 1, last_seq: head }
    expect(await conversation.rewind(request, { dryRun: true })).toEqual({
      to_seq: 1,
      closed: { requests: [], tasks: [], subagents: [] },
      processes: [],
    })
    expect(conversation.log.head).toBe(head)
  })

  test('happens once for one key, and once for two clients at a time', async () => {
    await using bench = await setScene()
    const conversation = await bench.converse()
    await say(conversation)
    const request = { to_seq: 1, last_seq: conversation.log.head }
    const once = () => conversation.rewind(request, { idempotency: { key: 'k', bodyHash: 'h' } })
    const [one, two, other] = await Promise.allSettled([once(), once(), conversation.rewind(request, {})])
    expect(two).toMatchObject({ status: 'fulfilled', value: { seq: (one as { value: { seq: number } }).value.seq } })
    expect(other).toMatchObject({ status: 'rejected', reason: { code: 'conversation_changed' } })
    expect(only(await eventsOf(conversation), 'Rewound')).toHaveLength(1)
  })

  test('ends the run and its calls, also one that does not listen to its signal', async () => {
    const work = gate('Work', { stubborn: true })
    const script: Script = ({ messages }) =>
      messages.some(({ role }) => role === 'tool') ? { text: 'done' } : { calls: [call('Work')] }
    await using bench = await setScene({ script, tools: [work.tool] })
    const conversation = await bench.converse()
    await conversation.post(userText(GONE, true))
    await work.entered
    const { seq } = await rewind(conversation, 1)
    expect(conversation.state).toMatchObject({ status: 'idle', openCalls: [] })
    work.open('late')
    expect(await say(conversation, 'now')).toMatchObject({ stop_reason: 'completed' })
    expect(lastRequest(bench)).not.toContain(GONE)
    const after = (await eventsOf(conversation)).filter((event) => event.seq > seq!)
    expect(only(after, 'ToolResult').filter(({ output }) => output === 'late')).toHaveLength(1)
  })

  test('cancels the tasks that were posted after the event, and the one that the agent works on', async () => {
    const work = gate('Work')
    await using bench = await setScene({ script: () => ({ calls: [call('Work')] }), tools: [work.tool] })
    const conversation = await bench.converse()
    const runnable = { type: 'AgentRun' as const, message: { role: 'user' as const, content: GONE } }
    const works = await conversation.tasks.post({ title: 'works', runnable })
    await work.entered
    const runs = { type: 'Command' as const, command: 'sleep 1000', timeout: 1000 }
    const commands = await conversation.tasks.post({ title: 'sleeps', runnable: runs })
    const { closed } = await rewind(conversation, 1)
    for (const { id } of [works, commands])
      expect(await conversation.tasks.get(id)).toMatchObject({ status: 'cancelled' })
    expect(closed.tasks.toSorted()).toEqual([works.id, commands.id].toSorted())
    expect(conversation.state.tasks).toEqual([])
    work.open()
  })

  test('waits for no compaction', async () => {
    const summary = Promise.withResolvers<{ text: string }>()
    await using bench = await setScene({
      script: ({ text }) => (text.includes('Write a summary') ? summary.promise : { text: LONG }),
    })
    const conversation = await bench.converse()
    await say(conversation, 'the first')
    await say(conversation, 'the second')
    const compacted = conversation.compactions.compact({})
    await expect.poll(() => bench.model.requests.length).toBe(3)
    await expect(rewind(conversation, 1)).rejects.toMatchObject({ code: 'conversation_running' })
    summary.resolve({ text: 'a summary' })
    await compacted
  })

  test('names the processes of the agent in the background, and ends them with their shell when it is asked for', async () => {
    const script: Script = ({ messages }) =>
      messages.at(-1)?.role === 'tool' ? { text: 'done' } : { calls: [call('Start')] }
    const deps: BenchOptions['deps'] = {
      createTools: (_, { shells }) => [
        tool('Start', async (_input, { signal }) => {
          const { exitCode } = await shells.get('agent').run('WORD=x; sleep 1000 &', { timeout: 10, signal })
          return { output: exitCode }
        }),
      ],
    }
    await using bench = await setScene({ script, deps })
    const conversation = await bench.converse()
    const end = conversation.log.head
    await say(conversation)
    const lines = async () => (await conversation.exec.processes.list()).map((each) => each.command_line)
    await expect.poll(lines).toContain('sleep 1000') // until then it is a copy of the shell
    const { processes } = await rewind(conversation, end)
    expect(processes).toMatchObject([{ command_line: 'sleep 1000', session_id: 'agent' }])
    const event = only(await eventsOf(conversation), 'Rewound')[0]!
    expect(event.processes_left).toBe(1)
    await rewind(conversation, event.seq, { end_processes: true })
    expect(await conversation.exec.processes.list()).toEqual([])
    expect((await conversation.exec.shells.list()).map(({ id }) => id)).toEqual([])
  })
})
