import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { ListConversations } from '../../../src/contract/conversation.ts'
import type { Event, EventOf } from '../../../src/contract/events/event.ts'
import type { Runnable, TaskStatus } from '../../../src/contract/values/task.ts'
import { ListTasks } from '../../../src/contract/values/task.ts'
import type { Conversation } from '../../../src/conversations/conversation.ts'
import { EMPTY_STATE, fold } from '../../../src/state/state.ts'
import { createJsonlStore } from '../../../src/storage/files/log/jsonl-store.ts'
import { uuid7 } from '../../../src/lib/uuid7.ts'
import type { Script, ScriptedQuestion } from '../../../src/llm/scripted/script.ts'
import type { BenchOptions } from '../fixtures.ts'
import { call, eventsOf, gate, only, openStorage, setBench, tool, until, userText } from '../fixtures.ts'
import { mortalStore } from '../mortal-store.ts'
import { effort } from '../../support/patience.ts'
import { takeTime } from '../../support/take-time.ts'
import { approvalsOf } from '../../support/answering.ts'

const agentRun = (text: string): Runnable => ({ type: 'AgentRun', message: { role: 'user', content: text } })
const ticker = (count = 2, interval = 0.1): Runnable => ({ type: 'Ticker', interval, count })
const list = (query: Partial<ListTasks> = {}) => ListTasks.parse(query)

/** Posts a task of the agent; answers its id. */
const ask = async (conversation: Conversation, text: string) =>
  (await conversation.tasks.post({ title: text, runnable: agentRun(text) })).id

const isOver = (status: TaskStatus) => status !== 'pending' && status !== 'running'

async function endOf(conversation: Conversation, taskId: string): Promise<EventOf<'TaskUpdate'>> {
  return await until(conversation, 'TaskUpdate', (event) => event.task_id === taskId && isOver(event.status))
}

const statusesOf = (events: readonly Event[], taskId: string) =>
  only(events, 'TaskUpdate')
    .filter((event) => event.task_id === taskId && !event.progress)
    .map((event) => event.status)

/** Whether the model was asked nothing before. */
const isNew = ({ messages }: ScriptedQuestion['body']) => !messages.some(({ role }) => role === 'assistant')

const saidLast = ({ messages }: ScriptedQuestion['body'], text: string) =>
  JSON.stringify(messages.findLast(({ role }) => role === 'user')).includes(text)

/** The model answers what it is asked last. */
const ECHO: Script = ({ body }) => ({
  text: `Did: ${JSON.stringify(body.messages.at(-1)?.content).replaceAll('"', '')}`,
})

describe('tasks of the agent', () => {
  test('run one after another, in the order they were posted; each has its message, its run and its result', async () => {
    await using bench = await setBench({ script: ECHO })
    const conversation = await bench.converse()
    const ids = await Promise.all(['one', 'two', 'three'].map((text) => ask(conversation, text)))
    await endOf(conversation, ids[2]!)
    const events = await eventsOf(conversation)
    for (const [at, id] of ids.entries()) {
      expect(statusesOf(events, id)).toEqual(['pending', 'running', 'completed'])
      const text = ['one', 'two', 'three'][at]!
      const [message] = only(events, 'UserMessage').filter((event) => event.task_id === id)
      expect(message).toMatchObject({ content: [{ type: 'text', text }], run: true })
      expect(await conversation.tasks.get(id)).toMatchObject({
        title: text,
        status: 'completed',
        run_id: message!.run_id,
        runnable: { type: 'AgentRun', message: { role: 'user', content: [{ type: 'text', text }] } },
        result: { type: 'AgentRun', run_id: message!.run_id, final_text: expect.stringContaining(text) },
      })
    }
    expectNoOverlap(events)
  })

  test('wait while the agent does something else, and continue when that ends, even with an error', async () => {
    const slow = gate('Slow')
    const script: Script = ({ body }) => {
      if (saidLast(body, 'later')) return { text: 'Done.' }
      return isNew(body) ? { calls: [call('Slow')] } : { status: 400, error: { message: 'no' } }
    }
    await using bench = await setBench({ script, tools: [slow.tool] })
    const conversation = await bench.converse()
    await conversation.post(userText('go', true))
    await slow.entered
    const id = await ask(conversation, 'later')
    expect(await conversation.tasks.get(id)).toMatchObject({ status: 'pending' })
    slow.open()
    expect(await endOf(conversation, id)).toMatchObject({ status: 'completed' })
    expect(only(await eventsOf(conversation), 'Result').map((event) => event.stop_reason)).toEqual([
      'error',
      'completed',
    ])
  })

  test('a message during a task belongs to its run; one that asks for a run leaves nothing behind', async () => {
    const slow = gate('Slow')
    await using bench = await setBench({
      script: [{ calls: [call('Slow')] }, { text: 'Both.' }, { text: 'Two.' }],
      tools: [slow.tool],
    })
    const conversation = await bench.converse()
    const id = await ask(conversation, 'one')
    await slow.entered
    await conversation.post(userText('and this', true))
    const second = await ask(conversation, 'two')
    slow.open()
    expect(await endOf(conversation, id)).toMatchObject({ result: { final_text: 'Both.' } })
    expect(await endOf(conversation, second)).toMatchObject({ result: { final_text: 'Two.' } })
    expect(only(await eventsOf(conversation), 'Result')).toHaveLength(2)
  })

  test('a pause stops the queue; the next run continues the same task, then the queue', async () => {
    const slow = gate('Slow')
    await using bench = await setBench({
      script: [{ calls: [call('Slow')] }, { text: 'One.' }, { text: 'Two.' }],
      tools: [slow.tool],
    })
    const conversation = await bench.converse()
    const [one, two] = [await ask(conversation, 'one'), await ask(conversation, 'two')]
    await slow.entered
    await conversation.pause({ interrupt: false })
    const three = await ask(conversation, 'three')
    slow.open()
    await until(conversation, 'ToolResult')
    expect(conversation.state.status).toBe('paused')
    expect((await conversation.tasks.list(list({ order: 'asc' }))).items.map((task) => task.status)).toEqual([
      'running',
      'pending',
      'pending',
    ])
    const runId = await conversation.run()
    expect(await endOf(conversation, one)).toMatchObject({
      status: 'completed',
      run_id: runId,
      result: { run_id: runId },
    })
    await endOf(conversation, three)
    expectNoOverlap(await eventsOf(conversation))
    expect(statusesOf(await eventsOf(conversation), two)).toEqual(['pending', 'running', 'completed'])
  })

  test('a limit is the end of the task as an error, and the next one has its turn', async () => {
    await using bench = await setBench({
      script: ({ body }) => (isNew(body) ? { calls: [call('Quick')] } : { text: 'Done.' }),
      tools: [tool('Quick', () => ({ output: 'ok' }))],
    })
    const conversation = await bench.converse({ max_iteration_per_run: 1 })
    const [one, two] = [await ask(conversation, 'one'), await ask(conversation, 'two')]
    expect(await endOf(conversation, one)).toMatchObject({
      status: 'error',
      message: expect.stringContaining('iteration_limit'),
    })
    expect(await endOf(conversation, two)).toMatchObject({ status: 'completed' })
  })
})

describe('cancelling', () => {
  test('the running task ends its run and its tool immediately; the conversation is cancelled', async () => {
    const slow = gate('Slow')
    await using bench = await setBench({
      script: [{ calls: [call('Slow'), call('Slow')] }, { text: 'After.' }],
      tools: [slow.tool],
    })
    const conversation = await bench.converse()
    const id = await ask(conversation, 'one')
    await slow.entered
    const task = await conversation.tasks.cancel(id)
    expect(task).toMatchObject({ status: 'cancelled', result: { type: 'AgentRun' } })
    expect(conversation.view().status).toBe('cancelled')
    const events = await eventsOf(conversation)
    expect(only(events, 'ToolResult')).toMatchObject([{ error_type: 'interrupted' }, { error_type: 'interrupted' }])
    expect(only(events, 'Result')).toMatchObject([{ stop_reason: 'cancelled' }])
    expect(slow.calls(), 'the second call of the turn was never started').toBe(1)

    await conversation.post(userText('again', true))
    await until(conversation, 'Result', (event) => event.stop_reason === 'completed')
    expect(slow.calls(), 'nor is it by a later run').toBe(1)
  })

  test('a tool that ignores it delays the next task, and its result comes once', async () => {
    const slow = gate('Slow', { stubborn: true })
    await using bench = await setBench({ script: [{ calls: [call('Slow')] }, { text: 'Next.' }], tools: [slow.tool] })
    const conversation = await bench.converse()
    const [one, two] = [await ask(conversation, 'one'), await ask(conversation, 'two')]
    await slow.entered
    expect(await conversation.tasks.cancel(one)).toMatchObject({ status: 'cancelled' })
    expect(await conversation.tasks.get(two)).toMatchObject({ status: 'running' })
    slow.open()
    await endOf(conversation, two)
    expect(only(await eventsOf(conversation), 'ToolResult')).toMatchObject([{ output: 'through' }])
  })

  test('a queued task leaves the status and the run alone', async () => {
    const slow = gate('Slow')
    await using bench = await setBench({ script: [{ calls: [call('Slow')] }, { text: 'Done.' }], tools: [slow.tool] })
    const conversation = await bench.converse()
    const [one, two] = [await ask(conversation, 'one'), await ask(conversation, 'two')]
    await slow.entered
    expect(await conversation.tasks.cancel(two)).toMatchObject({ status: 'cancelled' })
    expect(conversation.view().status).toBe('running')
    slow.open()
    expect(await endOf(conversation, one)).toMatchObject({ status: 'completed' })
    expect(statusesOf(await eventsOf(conversation), two)).toEqual(['pending', 'cancelled'])
  })

  test('an ended task is not changed, and its outcome is returned; an unknown one is not found', async () => {
    await using bench = await setBench({ script: ECHO })
    const conversation = await bench.converse()
    const id = await ask(conversation, 'one')
    await endOf(conversation, id)
    await expect.poll(() => conversation.state.status).toBe('idle')
    const { lastSeq } = conversation.state
    expect(await conversation.tasks.cancel(id)).toMatchObject({ status: 'completed' })
    expect(conversation.state.lastSeq).toBe(lastSeq)
    for (const unknown of [uuid7(), uuid7(Date.now() + 3_600_000), uuid7(0), '7f0f0000-0000-4000-8000-000000000001'])
      await expect(conversation.tasks.cancel(unknown)).rejects.toMatchObject({ code: 'task_not_found' })
  })

  test('pending approvals are denied with it', async () => {
    const ran: unknown[] = []
    const act = tool('Act', (input) => (ran.push(input), { output: 'ran' }))
    await using bench = await setBench({ script: [{ calls: [call('Act')] }, { text: 'Done.' }], tools: [act] })
    const conversation = await bench.converse({ confirmation_mode: true })
    const id = await ask(conversation, 'one')
    await until(conversation, 'RequestOpened')
    await expect.poll(() => conversation.state.status).toBe('waiting_for_confirmation')
    expect(await conversation.tasks.cancel(id)).toMatchObject({ status: 'cancelled' })
    expect(approvalsOf(conversation).pending().items).toEqual([])
    const second = await ask(conversation, 'two')
    expect(await endOf(conversation, second)).toMatchObject({ status: 'completed' })
    expect(ran).toEqual([])
  })
})

describe('a Ticker', () => {
  test('reports each tick and then its end, while an agent runs', async () => {
    const slow = gate('Slow')
    await using bench = await setBench({ script: [{ calls: [call('Slow')] }, { text: 'Done.' }], tools: [slow.tool] })
    const conversation = await bench.converse()
    await conversation.post(userText('go', true))
    await slow.entered
    const { id: taskId } = await conversation.tasks.post({ title: 'tick', runnable: ticker(3) })
    expect(await endOf(conversation, taskId)).toMatchObject({
      status: 'completed',
      result: { type: 'Ticker', ticks: 3 },
    })
    const updates = only(await eventsOf(conversation), 'TaskUpdate').slice(2)
    expect(updates.map((event) => event.progress ?? event.status)).toEqual([
      { done: 1, total: 3 },
      { done: 2, total: 3 },
      'completed',
    ])
    expect(conversation.view().status).toBe('running')
    slow.open()
  })

  test('stops when it is cancelled, and says how far it came; the conversation’s status stays', async () => {
    await using bench = await setBench()
    const conversation = await bench.converse()
    const { id: taskId } = await conversation.tasks.post({ title: 'tick', runnable: ticker(1000) })
    await until(conversation, 'TaskUpdate', (event) => event.progress?.done === 1)
    expect(await conversation.tasks.cancel(taskId)).toMatchObject({ status: 'cancelled', result: { type: 'Ticker' } })
    expect(conversation.view().status).toBe('idle')
    const { lastSeq } = conversation.state
    const { id: later } = await conversation.tasks.post({ title: 'later', runnable: ticker(3) })
    await endOf(conversation, later)
    const after = only(await eventsOf(conversation), 'TaskUpdate').filter(({ seq }) => seq > lastSeq)
    expect(new Set(after.map(({ task_id }) => task_id)), 'no tick comes after the end').toEqual(new Set([later]))
  })
})

describe('the list', () => {
  test('has every task once, in either order and in pages of any size, filtered by status', async () => {
    await using bench = await setBench({ script: ECHO })
    const conversation = await bench.converse()
    const ids = [] as string[]
    for (let n = 0; n < 7; n++) ids.push(await ask(conversation, `task ${n}`))
    await endOf(conversation, ids[6]!)
    await expect.poll(() => conversation.state.status).toBe('idle')
    const { id: open } = await conversation.tasks.post({ title: 'tick', runnable: ticker(1000) })
    await conversation.post(userText('between'))
    const all = [...ids, open]
    for (const limit of [1, 3, 8, 100]) {
      expect(await pagesOf(conversation, { order: 'asc', limit })).toEqual(all)
      expect(await pagesOf(conversation, { order: 'desc', limit })).toEqual(all.toReversed())
    }
    expect(await pagesOf(conversation, { status: 'completed', order: 'asc', limit: 2 })).toEqual(ids)
    expect(await pagesOf(conversation, { status: 'running' })).toEqual([open])
    expect(await pagesOf(conversation, { status: 'error' })).toEqual([])
    // The ticker goes on meanwhile.
    for (const { progress: _, ...task } of (await conversation.tasks.list(list())).items)
      expect(await conversation.tasks.get(task.id)).toMatchObject({ ...task, updated_at: expect.any(String) })
  })

  test('finds a task that ended, also if the clock was set back while it was posted', async () => {
    await using bench = await setBench()
    const conversation = await bench.converse()
    let now = Date.now() + 1000
    using _clock = vi.spyOn(Date, 'now').mockImplementation(() => now--)
    const { id } = await conversation.tasks.post({ title: 'tick', runnable: ticker(1000) })
    expect(await conversation.tasks.cancel(id)).toMatchObject({ id, status: 'cancelled' })
  })

  test('refuses a page that no page of this order gave', async () => {
    await using bench = await setBench()
    const conversation = await bench.converse()
    for (const text of [
      'x',
      Buffer.from('["asc","1"]').toString('base64url'),
      Buffer.from('["desc","-1"]').toString('base64url'),
    ])
      await expect(conversation.tasks.list(list({ page_id: text }))).rejects.toMatchObject({ code: 'invalid_cursor' })
  })
})

async function pagesOf(conversation: Conversation, query: Partial<ListTasks>): Promise<string[]> {
  const ids: string[] = []
  for (let page_id: string | undefined; ;) {
    const page = await conversation.tasks.list(list({ ...query, ...(page_id !== undefined && { page_id }) }))
    ids.push(...page.items.map((task) => task.id))
    if (page.next_page_id === null) return ids
    page_id = page.next_page_id
  }
}

describe('an Idempotency-Key', () => {
  test('creates the same task once: concurrently, later and after a restart the response is the same', async () => {
    await using bench = await setBench({ script: ECHO })
    const { id } = await bench.converse()
    const key = { key: 'k', bodyHash: 'h' }
    const post = async (bodyHash = 'h') => {
      const { tasks } = await bench.manager.open(id)
      return await tasks.post({ title: 'one', runnable: agentRun('one') }, { ...key, bodyHash })
    }
    const answers = await Promise.all([post(), post(), post()])
    await endOf(await bench.manager.open(id), answers[0].id)
    answers.push(await post())
    await bench.restart({ kill: true })
    answers.push(await post())
    for (const answer of answers) expect(answer).toEqual(answers[0])
    await expect(post('other')).rejects.toMatchObject({ code: 'idempotency_mismatch' })
    const conversation = await bench.manager.open(id)
    expect(await pagesOf(conversation, {})).toEqual([answers[0].id])
    await expect(conversation.post(userText('x'), { ...key, bodyHash: 'of a message' })).rejects.toMatchObject({
      code: 'idempotency_mismatch',
    })
  })
})

test('a command that contains a secret is refused: with the secret redacted it would do something else', async () => {
  await using bench = await setBench()
  const { tasks, log } = await bench.converse({ secrets: { TOKEN: 'a-secret-of-the-tests' } })
  const runnable: Runnable = { type: 'Command', command: 'echo a-secret-of-the-tests', timeout: 5 }
  const { head } = log
  await expect(tasks.post({ title: 'x', runnable })).rejects.toMatchObject({ code: 'invalid_request' })
  expect(log.head).toBe(head)
})

test('a task is redacted when it is posted, and the agent reads the redacted text', async () => {
  await using bench = await setBench({ script: ECHO })
  const conversation = await bench.converse({ secrets: { TOKEN: 'a-secret-of-the-tests' } })
  const id = await ask(conversation, 'use a-secret-of-the-tests')
  await endOf(conversation, id)
  expect(JSON.stringify(await eventsOf(conversation))).not.toContain('a-secret-of-the-tests')
  expect(await conversation.tasks.get(id)).toMatchObject({ title: 'use <secret:TOKEN>' })
})

/** A bench whose server can be killed. */
async function setMortal(options: BenchOptions) {
  const store = mortalStore()
  const bench = await setBench({ ...options, logs: store })
  return { bench, crash: () => bench.restart({ kill: true, between: store.die }) }
}

describe('a start of the server', () => {
  test.each([true, false])(
    'resume_on_start %s: the interrupted task continues with its run, and the queue after it',
    async (resume) => {
      const slow = gate('Slow')
      const script: Script = ({ body }) => (isNew(body) ? { calls: [call('Slow')] } : { text: 'Done.' })
      const { bench, crash } = await setMortal({ script, tools: [slow.tool] })
      await using _ = bench
      const { id } = await bench.converse({ resume_on_start: resume })
      const before = await bench.manager.open(id)
      const [one, two] = [await ask(before, 'one'), await ask(before, 'two')]
      const tick = await before.tasks.post({ title: 'tick', runnable: ticker(1000) })
      await slow.entered
      await crash()
      const conversation = await bench.manager.open(id)
      expect(await conversation.tasks.get(tick.id)).toMatchObject({
        status: 'error',
        message: expect.stringContaining('not known'),
      })
      if (!resume) {
        expect(conversation.state).toMatchObject({ status: 'paused', reason: 'server_restart' })
        expect(await conversation.tasks.get(one)).toMatchObject({ status: 'running' })
        expect(await conversation.tasks.get(two)).toMatchObject({ status: 'pending' })
        await conversation.run()
      }
      expect(await endOf(conversation, one)).toMatchObject({ status: 'completed' })
      expect(await endOf(conversation, two)).toMatchObject({ status: 'completed' })
      slow.open()
    },
  )

  test('a posted task begins without any request, also after a kill', async () => {
    const slow = gate('Slow')
    const { bench, crash } = await setMortal({
      script: [{ calls: [call('Slow')] }, { text: 'Done.' }],
      tools: [slow.tool],
    })
    await using _ = bench
    const { id } = await bench.converse()
    // As the log is right after a task was stored, and before it has begun.
    await bench.restart({
      between: async () => {
        await (await openStorage(bench.dataDir)).active.set(id)
        const { log } = await createJsonlStore({ directory: join(bench.dataDir, 'sessions') }).open(id)
        const posted = {
          type: 'TaskUpdate',
          source: 'user',
          task_id: uuid7(),
          title: 'one',
          status: 'pending',
        } as const
        await log.append([{ ...posted, runnable: agentRun('one') }])
        await log.close()
      },
    })
    await slow.entered
    await crash()
    const { items } = await bench.manager.list(ListConversations.parse({}))
    expect(items, 'the list opens nothing').toMatchObject([{ id, status: 'paused' }])
    slow.open()
  })

  test('finds a conversation in which a job runs, and leaves one alone in which nothing does', async () => {
    await using bench = await setBench()
    const conversation = await bench.converse()
    const marked = () => readdir(join(bench.dataDir, 'active'))
    const { id: taskId } = await conversation.tasks.post({ title: 'tick', runnable: ticker(1000) })
    expect(await marked()).toEqual([conversation.id])
    await conversation.tasks.cancel(taskId)
    expect(await marked()).toEqual([])
  })

  test('meta.json restores the open tasks as the log has them', async () => {
    await using bench = await setBench({ script: ECHO })
    const conversation = await bench.converse()
    await conversation.tasks.post({ title: 'tick', runnable: ticker(1000) })
    await until(conversation, 'TaskUpdate', (event) => event.progress?.done === 1)
    await conversation.post(userText('note'))
    await bench.restart()
    const again = await bench.manager.open(conversation.id)
    expect((await eventsOf(again)).reduce(fold, EMPTY_STATE)).toEqual(again.state)
  })
})

/** Whatever clients, or bad luck, may do. */
type Action =
  | { kind: 'ask'; calls: number }
  | { kind: 'tick' | 'pause' | 'interrupt' | 'run' | 'crash' | 'stop' | 'rest' }
  | { kind: 'say'; run: boolean }
  | { kind: 'cancel'; which: number }

const actions = fc.array(
  fc.oneof(
    { weight: 5, arbitrary: fc.record({ kind: fc.constant('ask' as const), calls: fc.nat(2) }) },
    { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom('run', 'pause', 'interrupt', 'rest', 'rest', 'tick') }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('crash', 'stop') }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('say' as const), run: fc.boolean() }) },
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('cancel' as const), which: fc.nat(3) }) },
  ),
  { minLength: 4, maxLength: 14 },
) as fc.Arbitrary<Action[]>

/** As many calls as the last message of a user asks for, then an end. */
const OBEDIENT: Script = ({ body }) => {
  const last = body.messages.findLastIndex(({ role }) => role === 'user')
  const wanted = Number(/calls: (\d)/.exec(JSON.stringify(body.messages[last]))?.[1] ?? 0)
  const made = body.messages.slice(last).filter(({ role }) => role === 'assistant').length
  return made < wanted ? { calls: [call('Nap')] } : { text: 'Done.' }
}

test('property: whatever is done in whatever order, every task ends exactly once, and the agent does one at a time', async () => {
  let ended = 0
  await fc.assert(
    fc.asyncProperty(actions, async (plan) => {
      const nap = tool('Nap', async (_, { signal }) => {
        await takeTime(4, signal)
        return { output: 'slept' }
      })
      const { bench, crash } = await setMortal({ script: OBEDIENT, tools: [nap] })
      await using _ = bench
      const { id } = await bench.converse()
      for (const action of plan)
        await carryOut(
          action,
          () => bench.manager.open(id),
          crash,
          () => bench.restart(),
        )
      const conversation = await bench.manager.open(id)
      await settle(conversation)
      const events = await eventsOf(conversation)
      ended += expectSound(events)
      const { lastSeq: _seq, ...state } = conversation.state
      expect(events.reduce(fold, EMPTY_STATE)).toMatchObject(state)
    }),
    { numRuns: effort(10, 600) },
  )
  expect(ended, 'some were asked for').toBeGreaterThan(20)
})

async function carryOut(
  action: Action,
  open: () => Promise<Conversation>,
  crash: () => Promise<void>,
  restart: () => Promise<void>,
): Promise<void> {
  const conversation = await open()
  const act = async () => {
    switch (action.kind) {
      case 'ask':
        return await conversation.tasks.post({ title: 'ask', runnable: agentRun(`calls: ${action.calls}`) })
      case 'tick':
        return await conversation.tasks.post({ title: 'tick', runnable: ticker(2) })
      case 'say':
        return await conversation.post(userText('calls: 1', action.run))
      case 'run':
        return await conversation.run()
      case 'pause':
      case 'interrupt':
        return await conversation.pause({ interrupt: action.kind === 'interrupt' })
      case 'rest':
        return await takeTime(15)
      case 'cancel': {
        const { items } = await conversation.tasks.list(list({ order: 'asc' }))
        const task = items[action.which]
        return task && (await conversation.tasks.cancel(task.id))
      }
      case 'crash':
        return await crash()
      case 'stop':
        return await restart()
    }
  }
  await act().catch((error: unknown) => expect(error).toMatchObject({ name: 'Problem' }))
}

/** Runs on what was paused until nothing is left to do. */
async function settle(conversation: Conversation): Promise<void> {
  await expect
    .poll(
      async () => {
        if (conversation.state.status === 'paused') await conversation.run().catch(() => {})
        return conversation.state.tasks.length === 0 && conversation.state.status !== 'running'
      },
      { interval: 5 },
    )
    .toBe(true)
}

/** Answers how many tasks there were. */
function expectSound(events: readonly Event[]): number {
  const tasks = Map.groupBy(only(events, 'TaskUpdate'), (event) => event.task_id)
  for (const updates of tasks.values()) {
    const statuses = updates.filter((event) => !event.progress).map((event) => event.status)
    expect(statuses.join(' ')).toMatch(/^pending (running )?(completed|error|cancelled)$/)
  }
  expectNoOverlap(events)
  const runs = new Set(
    only(events, 'StatusUpdate').flatMap((event) => (event.status === 'running' ? [event.run_id] : [])),
  )
  expect(only(events, 'Result').map((event) => event.run_id)).toEqual([...runs])
  const calls = only(events, 'ToolUse').map((event) => event.tool_use_id)
  expect(
    only(events, 'ToolResult')
      .map((event) => event.tool_use_id)
      .toSorted(),
  ).toEqual(calls.toSorted())
  return tasks.size
}

/** Between a task's `running` and its end there is no other's. */
function expectNoOverlap(events: readonly Event[]): void {
  const agents = new Set(only(events, 'UserMessage').flatMap((event) => event.task_id ?? []))
  let current: string | undefined
  for (const event of only(events, 'TaskUpdate')) {
    if (!agents.has(event.task_id)) continue
    if (event.status === 'running') {
      expect(current).toBeUndefined()
      current = event.task_id
    } else if (event.task_id === current) current = undefined
  }
}
