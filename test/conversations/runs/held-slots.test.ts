/** Slots of agents whose calls hold a form open. */
import { expect, test } from 'vitest'
import { createTask } from '../../../src/tools/task/task.ts'
import type { TaskAccess } from '../../../src/tools/task/task-access.ts'
import type { Conversation } from '../../../src/conversations/conversation.ts'
import type { Script } from '../../../src/llm/scripted/script.ts'
import type { Bench } from '../fixtures.ts'
import { call, endOf, eventsOf, gate, only, say, setBench, tool, until, userText } from '../fixtures.ts'
import { mortalStore } from '../mortal-store.ts'

const QUESTION = { question: 'Which?', header: 'h', options: [{ label: 'a', description: '' }], multi_select: false }
const FORM = tool('Form', async (_, { openRequest, toolUseId, signal }) => {
  const answers = (
    await openRequest({ kind: 'elicitation', toolUseId, payload: { server: 'forms', questions: [QUESTION] }, signal })
  )?.answers
  return answers ? { output: 'filled' } : { output: '', error: { type: 'interrupted', message: 'Nobody answered.' } }
})

const task = (prompt: string, more = {}) => call('Task', { description: 'x', prompt, ...more })

/** Makes the calls that the last message names, once. `task-form` is a subagent that makes the call `Form`. */
const script: Script = ({ messages }) => {
  const last = messages.at(-1)
  const text = last?.role === 'user' ? JSON.stringify(last.content) : ''
  const named = [...(/calls ([\w ,-]+)/.exec(text)?.[1] ?? '').matchAll(/[\w-]+/g)].map(([name]) => name)
  if (named.length === 0) return { text: 'Done.' }
  return { calls: named.map((name) => (name.startsWith('task-') ? task(`calls ${name.slice(5)}`) : call(name))) }
}

/** A server with room for one run, whose agents have forms, two gates and subagents. */
async function setOne() {
  const [inside, besides] = [gate(), gate('Read')]
  const reader = { ...besides.tool, readOnly: true }
  const createTools = (names: readonly string[], { subagents }: { subagents: TaskAccess }) =>
    names.length > 0 ? [{ ...FORM, readOnly: true }, inside.tool, reader, createTask(subagents)] : []
  const logs = mortalStore()
  const bench = await setBench({ maxRuns: 1, script, logs, deps: { createTools } })
  const converse = (fields = {}) => bench.converse({ tools: ['Bash', 'Task'], ...fields })
  const restart = (how: 'stop' | 'kill') => bench.restart(how === 'kill' ? { kill: true, between: logs.die } : {})
  return { bench, inside, besides, converse, restart }
}

const begin = async (conversation: Conversation, calls: string) =>
  (await conversation.post(userText(`calls ${calls}`, true))).run_id!

const forms = ({ requests }: Conversation) => requests.list().filter(({ kind }) => kind === 'elicitation')

async function answer(conversation: Conversation): Promise<void> {
  const [form] = forms(conversation)
  await conversation.requests.answer(form!.request_id, { kind: 'elicitation', answers: { '0': 'a' } })
}

const asked = (conversation: Conversation, count = 1) => expect.poll(() => forms(conversation).length).toBe(count)

const results = async (conversation: Conversation) =>
  only(await eventsOf(conversation), 'ToolResult').map(({ output, error_type }) => error_type ?? output)

/** Another run can begin and end, so nobody has the slot. */
async function expectFree({ converse }: { bench: Bench; converse: () => Promise<Conversation> }): Promise<void> {
  const other = await converse()
  expect((await say(other, 'hello')).stop_reason).toBe('completed')
  const reasons = only(await eventsOf(other), 'StatusUpdate').map(({ reason }) => reason)
  expect(reasons.filter((reason) => reason === 'queued')).toEqual([])
}

test.each(['Form', 'Form, Form', 'task-Form', 'task-Form, task-Form', 'task-task-Form'])(
  'agents that wait for forms (%s) leave their slots to others, and continue with the answers',
  async (calls) => {
    const all = await setOne()
    await using _ = all.bench
    const conversation = await all.converse({ subagent_limits: { max_depth: 2 } })
    const run = await begin(conversation, calls)
    const count = calls.split(',').length
    if (count === 1 || !calls.includes('task')) await asked(conversation, count)
    // Both subagents work in turn in the one slot, which the first gives back.
    else await asked(conversation, 2)
    await expectFree(all)
    for (let left = count; left > 0; left--) await answer(conversation)
    expect((await endOf(conversation, run)).stop_reason).toBe('completed')
    expect((await results(conversation)).filter((each) => each === 'filled')).toHaveLength(count)
    await expectFree(all)
  },
)

test('an agent keeps its slot while another of its calls works next to the form', async () => {
  const all = await setOne()
  await using _ = all.bench
  const conversation = await all.converse()
  const run = await begin(conversation, 'Form, Read')
  await all.besides.entered
  await asked(conversation)
  const other = await all.converse()
  const otherRun = await begin(other, 'Form')
  await until(other, 'StatusUpdate', ({ reason }) => reason === 'queued')
  expect(forms(other)).toEqual([])
  // The end of the other call gives the slot back.
  all.besides.open()
  await asked(other)
  await answer(conversation)
  await answer(other)
  expect((await endOf(other, otherRun)).stop_reason).toBe('completed')
  expect((await endOf(conversation, run)).stop_reason).toBe('completed')
})

/** A form that is answered while another run has the slot. */
async function setAnswered(calls: string) {
  const all = await setOne()
  const conversation = await all.converse()
  const run = await begin(conversation, calls)
  await asked(conversation)
  const other = await all.converse()
  const otherRun = await begin(other, 'Gate')
  await all.inside.entered
  await answer(conversation)
  await until(conversation, 'RequestAnswered')
  return { ...all, conversation, run, other, otherRun }
}

test.each(['Form', 'task-Form'])('an answered call (%s) continues when its agent has a slot again', async (calls) => {
  const all = await setAnswered(calls)
  await using _ = all.bench
  const { conversation, run, other, otherRun } = all
  expect(await results(conversation)).toEqual([])
  const third = await all.converse()
  const thirdRun = (await third.post(userText('hello', true))).run_id!
  await until(third, 'StatusUpdate', ({ reason }) => reason === 'queued')
  all.inside.open()
  expect((await endOf(other, otherRun)).stop_reason).toBe('completed')
  expect((await endOf(conversation, run)).stop_reason).toBe('completed')
  expect((await endOf(third, thirdRun)).stop_reason).toBe('completed')
  expect((await results(conversation))[0]).toBe('filled')
  await expectFree(all)
})

test.each(['Form', 'task-Form'])(
  'a pause while an answered call (%s) waits for a slot lets the call end',
  async (calls) => {
    const all = await setAnswered(calls)
    await using _ = all.bench
    const { conversation } = all
    expect(await conversation.pause({ interrupt: false })).toBe('paused')
    expect((await until(conversation, 'ToolResult')).output).toBe('filled')
    all.inside.open()
    await endOf(all.other, all.otherRun)
    expect((await endOf(conversation, await conversation.run())).stop_reason).toBe('completed')
    await expectFree(all)
  },
)

test.each(['Form', 'task-Form'])(
  'a time limit while an answered call (%s) waits for a slot ends the run',
  async (calls) => {
    const all = await setAnswered(calls)
    await using _ = all.bench
    await all.bench.configure(all.conversation.id, { max_seconds_per_run: 1 })
    expect((await endOf(all.conversation, all.run)).stop_reason).toBe('time_limit')
    all.inside.open()
    await endOf(all.other, all.otherRun)
    await expectFree(all)
  },
)

test.each(['delete', 'stop', 'kill'] as const)(
  'a %s while an answered call waits for a slot takes nothing',
  async (how) => {
    const all = await setAnswered('Form')
    await using _ = all.bench
    const { bench, conversation } = all
    if (how === 'delete') await bench.manager.delete(conversation.id)
    else await all.restart(how)
    all.inside.open()
    if (how === 'delete') return await endOf(all.other, all.otherRun).then(() => expectFree(all))
    const reopened = await bench.manager.open(conversation.id)
    expect(reopened.state.status).toBe('paused')
    expect((await endOf(reopened, await reopened.run())).stop_reason).toBe('completed')
    expect(await results(reopened)).toHaveLength(1)
    await expectFree(all)
  },
)

test.each(['delete', 'stop', 'kill'] as const)('a %s while a call waits for its form takes nothing', async (how) => {
  const all = await setOne()
  await using _ = all.bench
  const { bench } = all
  const conversation = await all.converse()
  await begin(conversation, 'Form')
  await asked(conversation)
  await expectFree(all)
  if (how === 'delete') await bench.manager.delete(conversation.id)
  else await all.restart(how)
  await expectFree(all)
  if (how === 'delete') return
  const reopened = await bench.manager.open(conversation.id)
  expect((await endOf(reopened, await reopened.run())).stop_reason).toBe('completed')
  expect(await results(reopened)).toEqual(['interrupted'])
})

test.each(['Form', 'task-Form'])(
  'a run that finds a call (%s) of an earlier run at its form leaves its slot',
  async (calls) => {
    const all = await setOne()
    await using _ = all.bench
    const conversation = await all.converse()
    await begin(conversation, calls)
    await asked(conversation)
    expect(await conversation.pause({ interrupt: false })).toBe('paused')
    await expectFree(all)
    const run = await conversation.run()
    await expectFree(all)
    await answer(conversation)
    expect((await endOf(conversation, run)).stop_reason).toBe('completed')
    expect((await results(conversation))[0]).toBe('filled')
    await expectFree(all)
  },
)

test.each(['Form', 'task-Form'])('a pause with interrupt ends a form (%s) that holds no slot', async (calls) => {
  const all = await setOne()
  await using _ = all.bench
  const conversation = await all.converse()
  await begin(conversation, calls)
  await asked(conversation)
  expect(await conversation.pause({ interrupt: true })).toBe('paused')
  expect(forms(conversation)).toEqual([])
  await expectFree(all)
  expect((await endOf(conversation, await conversation.run())).stop_reason).toBe('completed')
  await expectFree(all)
})
