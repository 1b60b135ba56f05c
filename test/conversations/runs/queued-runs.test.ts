import { describe, expect, test } from 'vitest'
import { ListConversations } from '../../../src/contract/conversation.ts'
import type { Script } from '../../../src/llm/scripted/script.ts'
import { createTask } from '../../../src/tools/task/task.ts'
import { call, endOf, eventsOf, gate, only, say, setBench, until, userText } from '../fixtures.ts'
import { mortalStore } from '../mortal-store.ts'

/** Calls the tool when the user says so, and nothing else. */
const gateWhenAsked: Script = ({ body }) => {
  const last = body.messages.at(-1)
  const asks = last?.role === 'user' && JSON.stringify(last.content).includes('gate')
  return asks ? { calls: [call('Gate')] } : { text: 'Done.' }
}

/** Two conversations and room for one run; the first is inside its tool. */
async function setTwo() {
  const inside = gate()
  const bench = await setBench({
    maxRuns: 1,
    tools: [inside.tool],
    script: gateWhenAsked,
  })
  const [first, second] = [await bench.converse({ tools: ['Bash'] }), await bench.converse()]
  const { run_id: firstRun } = await first.post(userText('gate', true))
  await inside.entered
  const { run_id: secondRun } = await second.post(userText('hello', true))
  await until(second, 'StatusUpdate', ({ reason }) => reason === 'queued')
  return { bench, inside, first, second, firstRun: firstRun!, secondRun: secondRun! }
}

const statuses = async (conversation: Parameters<typeof eventsOf>[0]) =>
  only(await eventsOf(conversation), 'StatusUpdate').map(({ status, reason }) => `${status} ${reason}`)

describe('a run for which there is no room', () => {
  test('waits, is shown as queued in the log, in views and in lists, and works when another has ended', async () => {
    const { bench, inside, first, second, firstRun, secondRun } = await setTwo()
    await using _ = bench
    expect(second.view()).toMatchObject({ status: 'running', queued: true })
    expect(first.view()).not.toHaveProperty('queued')
    const { items } = await bench.manager.summaries(ListConversations.parse({ order: 'asc' }))
    expect(items.map(({ status, queued }) => [status, queued])).toEqual([
      ['running', undefined],
      ['running', true],
    ])
    expect(bench.model.requests).toHaveLength(1)
    inside.open()
    await endOf(first, firstRun)
    expect((await endOf(second, secondRun)).stop_reason).toBe('completed')
    expect(await statuses(second)).toEqual(['running message', 'running queued', 'running dequeued', 'idle completed'])
    expect(second.view()).not.toHaveProperty('queued')
  })

  test('can be paused, and then works no more; a later run does', async () => {
    const { bench, inside, first, second, firstRun } = await setTwo()
    await using _ = bench
    expect(await second.pause({ interrupt: false })).toBe('paused')
    inside.open()
    await endOf(first, firstRun)
    expect(bench.model.requests).toHaveLength(2)
    expect((await endOf(second, await second.run())).stop_reason).toBe('completed')
  })

  test('goes with its conversation, and leaves its turn to the next', async () => {
    const { bench, inside, first, second, firstRun } = await setTwo()
    await using _ = bench
    const third = await bench.converse()
    const { run_id } = await third.post(userText('hello', true))
    await bench.manager.delete(second.id)
    inside.open()
    await endOf(first, firstRun)
    expect((await endOf(third, run_id!)).stop_reason).toBe('completed')
  })

  test('has not begun when the server stops, and continues at the next start', async () => {
    const { bench, second } = await setTwo()
    await using _ = bench
    await bench.restart()
    const reopened = await bench.manager.open(second.id)
    expect(reopened.state).toMatchObject({ status: 'paused', reason: 'server_closing' })
    expect((await endOf(reopened, await reopened.run())).stop_reason).toBe('completed')
  })

  test('has its whole time before it when its turn comes', async () => {
    const { bench, inside, second } = await setTwo()
    await using _ = bench
    const limit = { max_seconds_per_run: 4 }
    const third = await bench.converse(limit)
    const { run_id } = await third.post(userText('hello', true))
    // One with the same limit, which begins to work only now, uses all of its time.
    await using other = await setBench({ tools: [gate().tool], script: gateWhenAsked })
    const hung = await other.converse({ ...limit, tools: ['Bash'] })
    expect((await endOf(hung, (await hung.post(userText('gate', true))).run_id!)).stop_reason).toBe('time_limit')
    inside.open()
    expect((await endOf(third, run_id!)).stop_reason).toBe('completed')
    expect(second.state.status).toBe('idle')
  })
})

test('a run that waits for a decision leaves its place to others', async () => {
  await using bench = await setBench({
    maxRuns: 1,
    tools: [gate().tool],
    script: gateWhenAsked,
  })
  const asking = await bench.converse({ tools: ['Bash'], confirmation_mode: true })
  await asking.post(userText('gate', true))
  await until(asking, 'StatusUpdate', ({ status }) => status === 'waiting_for_confirmation')
  const other = await bench.converse()
  const { run_id } = await other.post(userText('hello', true))
  await endOf(other, run_id!)
  expect(await statuses(other)).toEqual(['running message', 'idle completed'])
})

test('a pause ends subagents in the background also while it is being stored that the run waits', async () => {
  const logs = mortalStore()
  const script: Script = ({ text, messages }) => {
    if (text.includes('You are a subagent')) return { text: 'Never.', delay_ms: 60_000 }
    const task = call('Task', { description: 'x', prompt: 'go', run_in_background: true })
    return messages.length < 3 ? { calls: [task] } : { text: 'It works.' }
  }
  const deps = {
    createTools: (_: unknown, { subagents }: { subagents: Parameters<typeof createTask>[0] }) => [
      createTask(subagents),
    ],
  }
  await using bench = await setBench({ logs, script, deps, maxRuns: 1 })
  const conversation = await bench.converse({ tools: ['Task'] })
  await say(conversation)
  await expect
    .poll(() => bench.model.requests.filter(({ text }) => text.includes('You are a subagent')))
    .toHaveLength(1)
  // The second append says that the run waits: the subagent has the slot.
  let appends = 0
  logs.fault = () => (++appends === 2 ? 'slow' : undefined)
  await conversation.post(userText('go on', true))
  await conversation.pause({ interrupt: true })
  expect(only(await eventsOf(conversation), 'StatusUpdate').at(-2)?.reason).toBe('queued')
  expect(await conversation.isAtRest()).toBe(true)
})
