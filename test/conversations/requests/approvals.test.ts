import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Event } from '../../../src/contract/events/event.ts'
import type { ToolDecision } from '../../../src/contract/values/permission.ts'
import type { Conversation } from '../../../src/conversations/conversation.ts'
import { EMPTY_STATE, fold } from '../../../src/state/state.ts'
import { uuid7 } from '../../../src/lib/uuid7.ts'
import type { ScriptedTurn } from '../../../src/llm/scripted/script.ts'
import { hashInput } from '../../../src/policy/rules/input-hash.ts'
import type { Tool } from '../../../src/tools/tool.ts'
import type { Bench, Gate } from '../fixtures.ts'
import { call, eventsOf, gate, only, setBench, tool, until, userText } from '../fixtures.ts'
import { mortalStore } from '../mortal-store.ts'
import { expectWholeTurns } from '../wire.ts'
import { effort, PATIENCE_S } from '../../support/patience.ts'
import { takeTime } from '../../support/take-time.ts'
import { approvalsOf, decisionsIn, openedIn } from '../../support/answering.ts'

type Asked = ReturnType<ReturnType<typeof approvalsOf>['pending']>['items'][number]

/** What was run, in order. */
type Ran = { name: string; input: unknown }[]

function recording(name: string, ran: Ran, more: Partial<Tool<Record<string, unknown>>> = {}): Tool {
  const run = (input: Record<string, unknown>) => {
    ran.push({ name, input })
    return { output: `${name} ran ${JSON.stringify(input)}` }
  }
  return tool(name, run, { input: z.strictObject({ n: z.number(), stop: z.boolean().optional() }), ...more })
}

type Scene = AsyncDisposable & {
  bench: Bench
  ran: Ran
  /** As it is after a restart, too. */
  conversation: () => Promise<Conversation>
  /** Starts a run and resolves with what it asks for. */
  ask: () => Promise<Asked>
  confirm: (enabled: boolean) => Promise<void>
  /** As `kill -9`: what the old server has not stored by now, it never will. */
  crash: () => Promise<void>
}

const TURN: ScriptedTurn = { calls: [call('Act', { n: 1 }), call('Act', { n: 2 })] }

async function setScene(turns: ScriptedTurn[] = [TURN, { text: 'Done.' }], tools: Tool[] = []): Promise<Scene> {
  const ran: Ran = []
  const store = mortalStore()
  const bench = await setBench({
    logs: store,
    script: turns,
    tools: [recording('Act', ran), recording('Think', ran, { harmless: true }), ...tools],
  })
  const id = await bench.create({ confirmation_mode: true })
  const conversation = () => bench.manager.open(id)
  return {
    bench,
    ran,
    conversation,
    async ask() {
      await (await conversation()).post(userText('go', true))
      return await requestOf(await conversation())
    },
    crash: () => bench.restart({ kill: true, between: store.die }),
    confirm: async (enabled) => void (await (await bench.manager.open(id)).setConfirmation(enabled)),
    [Symbol.asyncDispose]: () => bench[Symbol.asyncDispose](),
  }
}

async function requestOf(conversation: Conversation): Promise<Asked> {
  await expect.poll(() => conversation.state.status).toBe('waiting_for_confirmation')
  return approvalsOf(conversation).pending().items[0]!
}

const allow = (use: Asked['tool_uses'][number], more: Partial<ToolDecision> = {}): ToolDecision => {
  return { tool_use_id: use.tool_use_id, input_hash: use.input_hash, behavior: 'allow', ...more }
}
const deny = (use: Asked['tool_uses'][number], message?: string) =>
  allow(use, { behavior: 'deny', ...(message !== undefined && { message }) })

/** Resolves when another conversation, which began later, has come to its question: this one does nothing by itself. */
async function expectAtRest({ bench }: Scene): Promise<void> {
  const asked = bench.model.requests.length
  await using other = await setScene()
  await other.ask()
  expect(bench.model.requests).toHaveLength(asked)
}

const settled = (conversation: Conversation, status: string) =>
  expect.poll(() => conversation.state.status).toBe(status)

/** The results of the turn, as the model read them. */
const sentToModel = (bench: Bench) =>
  bench.model.requests
    .at(-1)!
    .body.messages.filter(({ role }) => role === 'tool')
    .map(({ content }) => content)

/** One Result for each run that is over. */
function expectOneResultPerRun(events: readonly Event[]): void {
  const started = new Set(only(events, 'StatusUpdate').map((event) => event.run_id))
  const ended = only(events, 'Result').map((event) => event.run_id)
  expect(new Set(ended).size).toBe(ended.length)
  const last = events.at(-1)
  const continues = last?.type === 'StatusUpdate' && /running|waiting/.test(last.status) ? 1 : 0
  expect(ended).toHaveLength(started.size - continues)
}

describe('a call that waits', () => {
  test('runs when it is approved as shown, all of the turn in order; the model is asked only then', async () => {
    await using scene = await setScene()
    const { request_id, tool_uses } = await scene.ask()
    const conversation = await scene.conversation()
    expect(tool_uses).toMatchObject([
      { name: 'Act', input: { n: 1 }, input_hash: hashInput('Act', { n: 1 }) },
      { name: 'Act', input: { n: 2 } },
    ])
    expect(conversation.view()).toMatchObject({
      status: 'waiting_for_confirmation',
      state: { agent_waiting_for_confirmation: true, confirmation_mode: true, agent_paused: false },
    })
    expect(await approvalsOf(conversation).decide(request_id, [allow(tool_uses[1]!)])).toEqual({
      status: 'waiting_for_confirmation',
      pending: 1,
    })
    expect(
      approvalsOf(conversation)
        .pending()
        .items[0]?.tool_uses.map((use) => use.decision),
    ).toEqual([undefined, 'allow'])
    await expectAtRest(scene)
    expect(scene.ran).toEqual([])
    expect(await approvalsOf(conversation).decide(request_id, [allow(tool_uses[0]!)])).toEqual({
      status: 'running',
      pending: 0,
    })
    await settled(conversation, 'idle')
    expect(scene.ran.map(({ input }) => input)).toEqual([{ n: 1 }, { n: 2 }])
    expect(scene.bench.model.requests).toHaveLength(2)
    expectOneResultPerRun(await eventsOf(conversation))
  })

  test('denied next to an allowed one: the model reads both results in order, with the reason', async () => {
    await using scene = await setScene()
    const { request_id, tool_uses } = await scene.ask()
    const conversation = await scene.conversation()
    await approvalsOf(conversation).decide(request_id, [allow(tool_uses[1]!), deny(tool_uses[0]!, 'too risky')])
    await settled(conversation, 'idle')
    expect(scene.ran.map(({ input }) => input)).toEqual([{ n: 2 }])
    expect(sentToModel(scene.bench)).toEqual([
      expect.stringContaining('too risky'),
      expect.stringContaining('Act ran {"n":2}'),
    ])
    expect(only(await eventsOf(conversation), 'ToolResult')).toMatchObject([
      { tool_use_id: tool_uses[0]!.tool_use_id, error_type: 'denied' },
      { tool_use_id: tool_uses[1]!.tool_use_id, is_error: false },
    ])
  })

  test('all denied: the run continues, and the model reads it', async () => {
    await using scene = await setScene()
    const { request_id, tool_uses } = await scene.ask()
    const conversation = await scene.conversation()
    await approvalsOf(conversation).decide(
      request_id,
      tool_uses.map((use) => deny(use)),
    )
    await settled(conversation, 'idle')
    expect(scene.ran).toEqual([])
    expect(sentToModel(scene.bench)).toEqual([
      expect.stringContaining('did not allow'),
      expect.stringContaining('did not'),
    ])
  })

  test('rejected: idle, with results for the next request, and the model is not called', async () => {
    await using scene = await setScene()
    await scene.ask()
    const conversation = await scene.conversation()
    expect(await approvalsOf(conversation).reject('not today')).toEqual({ status: 'idle', pending: 0 })
    await expectAtRest(scene)
    expect(scene.bench.model.requests).toHaveLength(1)
    const events = await eventsOf(conversation)
    expect(only(events, 'ToolResult')).toMatchObject([{ error_type: 'rejected' }, { error_type: 'rejected' }])
    expect(only(events, 'Result')).toMatchObject([{ stop_reason: 'rejected' }])
    await conversation.run()
    await settled(conversation, 'idle')
    expect(sentToModel(scene.bench)).toEqual([
      expect.stringContaining('not today'),
      expect.stringContaining('not today'),
    ])
    await expect(approvalsOf(conversation).reject(undefined)).rejects.toMatchObject({ code: 'nothing_pending' })
  })

  test('with input that the user changed: the new input runs, and the model and the log show it', async () => {
    await using scene = await setScene([{ calls: [call('Act', { n: 1 })] }, { text: 'Done.' }])
    const { request_id, tool_uses } = await scene.ask()
    const conversation = await scene.conversation()
    const change = (updated_input: Record<string, unknown>) =>
      approvalsOf(conversation).decide(request_id, [allow(tool_uses[0]!, { updated_input })])
    for (const wrong of [{ n: 'one' }, {}, { n: 1, more: true }])
      await expect(change(wrong)).rejects.toMatchObject({ code: 'invalid_request' })
    expect(approvalsOf(conversation).pending().items).toHaveLength(1)
    await change({ n: 7, stop: true })
    await settled(conversation, 'idle')
    expect(scene.ran).toEqual([{ name: 'Act', input: { n: 7, stop: true } }])
    expect(sentToModel(scene.bench)[0]).toContain('{"n":7,"stop":true}')
    const events = await eventsOf(conversation)
    expect(only(events, 'ToolResult')[0]).toMatchObject({ ran_input: { n: 7, stop: true } })
    expect(decisionsIn(events)[0]).toMatchObject({
      input_hash: tool_uses[0]!.input_hash,
      updated_input: { n: 7, stop: true },
      answered_by: 'user',
    })
    expect(await change({ stop: true, n: 7 }), 'the same again, its keys in another order').toMatchObject({
      pending: 0,
    })
    await expect(change({ n: 8 })).rejects.toMatchObject({ code: 'already_answered' })
  })
})

describe('none of these grants anything', () => {
  test.each([
    ['the hash of another input', (use) => allow(use, { input_hash: hashInput('Act', { n: 9 }) }), 'input_changed'],
    ['a call of no request', (use) => allow(use, { tool_use_id: 'another' }), 'invalid_request'],
  ] as [string, (use: Asked['tool_uses'][number]) => ToolDecision, string][])('%s', async (_, wrong, code) => {
    await using scene = await setScene()
    const { request_id, tool_uses } = await scene.ask()
    const approvals = approvalsOf(await scene.conversation())
    const given = [allow(tool_uses[1]!), wrong(tool_uses[0]!)]
    await expect(approvals.decide(request_id, given)).rejects.toMatchObject({ code })
    expect(
      approvals.pending().items[0]?.tool_uses.some((use) => use.decision),
      'all of them or none',
    ).toBe(false)
  })

  test('another request, a stale one, the same call twice in one', async () => {
    await using scene = await setScene([TURN, TURN, { text: 'Done.' }])
    const first = await scene.ask()
    const conversation = await scene.conversation()
    const approvals = approvalsOf(conversation)
    await expect(
      approvals.decide(
        uuid7(),
        first.tool_uses.map((use) => allow(use)),
      ),
    ).rejects.toMatchObject({
      code: 'request_not_found',
    })
    await expect(approvals.approve(uuid7())).rejects.toMatchObject({ code: 'request_not_found' })
    const use = first.tool_uses[0]!
    await expect(approvals.decide(first.request_id, [allow(use), deny(use)])).rejects.toMatchObject({
      code: 'invalid_request',
    })
    await approvals.approve(first.request_id)
    await until(conversation, 'RequestOpened', (event) => event.request_id !== first.request_id)
    const second = await requestOf(conversation)
    expect(second.tool_uses.map((one) => one.input_hash)).toEqual(first.tool_uses.map((one) => one.input_hash))
    // The old answer once more is no answer to the new question, though it looks the same.
    expect(
      await approvals.decide(
        first.request_id,
        first.tool_uses.map((one) => allow(one)),
      ),
    ).toMatchObject({ pending: 1 })
    await expect(approvals.decide(first.request_id, [deny(use)])).rejects.toMatchObject({ code: 'already_answered' })
    expect(scene.ran).toHaveLength(2)
  })

  test('the message "yes", with or without a run: it replaces the pending request', async () => {
    for (const run of [false, true]) {
      await using scene = await setScene()
      const { request_id, tool_uses } = await scene.ask()
      const conversation = await scene.conversation()
      await conversation.post(userText('yes, approved, go on', run))
      await settled(conversation, 'idle')
      expect(scene.ran).toEqual([])
      expect(scene.bench.model.requests).toHaveLength(run ? 2 : 1)
      const events = await eventsOf(conversation)
      expect(decisionsIn(events)).toEqual([])
      expect(only(events, 'RequestClosed')).toMatchObject([
        { kind: 'permission', request_id, reason: 'message', tool_use_ids: tool_uses.map((use) => use.tool_use_id) },
      ])
      expect(only(events, 'Result')[0]).toMatchObject({ stop_reason: 'superseded' })
      expectOneResultPerRun(events)
      await expect(approvalsOf(conversation).decide(request_id, [allow(tool_uses[0]!)])).rejects.toMatchObject({
        code: 'request_closed',
      })
      await expect(approvalsOf(conversation).reject()).rejects.toMatchObject({ code: 'nothing_pending' })
    }
  })

  test('running, turning the mode off, restarting, and pausing', async () => {
    await using scene = await setScene()
    const { request_id } = await scene.ask()
    await expect((await scene.conversation()).run()).rejects.toMatchObject({
      code: 'waiting_for_confirmation',
      details: { request_id, pending: [{ name: 'Act' }, { name: 'Act' }] },
    })
    await scene.confirm(false)
    expect((await scene.conversation()).view()).toMatchObject({
      status: 'waiting_for_confirmation',
      state: { confirmation_mode: false },
    })
    for (const kill of [true, false]) {
      await (kill ? scene.crash() : scene.bench.restart())
      const again = await scene.conversation()
      expect(again.state.status).toBe('waiting_for_confirmation')
      expect(await again.pause({ interrupt: false })).toBe('paused')
      expect(approvalsOf(again).pending().items[0]).toMatchObject({ request_id })
      const runId = await again.run()
      expect(await again.waitForRun(runId, PATIENCE_S, new AbortController().signal)).toEqual({
        run_id: runId,
        status: 'waiting_for_confirmation',
      })
    }
    expect(scene.ran).toEqual([])
    expect(scene.bench.model.requests).toHaveLength(1)
    const conversation = await scene.conversation()
    await approvalsOf(conversation).approve(request_id)
    await settled(conversation, 'idle')
    expect(scene.ran).toHaveLength(2)
    expectOneResultPerRun(await eventsOf(conversation))
  })
})

test('calls decided while paused run with the next run, also after a restart, and not before', async () => {
  await using scene = await setScene()
  const { request_id, tool_uses } = await scene.ask()
  const before = await scene.conversation()
  await before.pause({ interrupt: false })
  expect(await approvalsOf(before).decide(request_id, [deny(tool_uses[0]!), allow(tool_uses[1]!)])).toEqual({
    status: 'paused',
    pending: 0,
  })
  await scene.crash()
  const conversation = await scene.conversation()
  expect(conversation.state).toMatchObject({ status: 'paused', openCalls: [{ input: { n: 2 } }] })
  expect(scene.ran).toEqual([])
  await conversation.run()
  await settled(conversation, 'idle')
  expect(scene.ran.map(({ input }) => input)).toEqual([{ n: 2 }])
  expectOneResultPerRun(await eventsOf(conversation))
})

test('an approved call that a crash interrupted is not run again', async () => {
  const { tool: slow, entered } = gate('Act2', { stubborn: true })
  await using scene = await setScene([{ calls: [call('Act2')] }, { text: 'Done.' }], [slow])
  const { request_id } = await scene.ask()
  await approvalsOf(await scene.conversation()).approve(request_id)
  await entered
  await scene.crash()
  const conversation = await scene.conversation()
  expect(conversation.state).toMatchObject({ status: 'paused', openCalls: [], request: undefined })
  expect(only(await eventsOf(conversation), 'ToolResult')).toMatchObject([{ error_type: 'interrupted' }])
})

describe('the mode', () => {
  test('applies to calls of a turn that a pause interrupted; running calls end before anything is asked', async () => {
    const slow = gate('Slow')
    await using scene = await setScene(
      [{ calls: [call('Slow'), call('Act', { n: 1 })] }, { calls: [call('Act', { n: 2 })] }, { text: 'Done.' }],
      [slow.tool],
    )
    await scene.confirm(false)
    const conversation = await scene.conversation()
    await conversation.post(userText('go', true))
    await slow.entered
    await conversation.pause({ interrupt: false })
    await scene.confirm(true)
    await conversation.run()
    await expectAtRest(scene)
    expect(conversation.state.status).toBe('running')
    slow.open()
    const { request_id, tool_uses } = await requestOf(conversation)
    expect(
      tool_uses.map((use) => use.input),
      'not about what runs already',
    ).toEqual([{ n: 1 }])
    await approvalsOf(conversation).decide(request_id, [deny(tool_uses[0]!)])
    await until(conversation, 'RequestOpened', (event) => event.request_id !== request_id)
    expect(slow.calls()).toBe(1)
    expect(only(await eventsOf(conversation), 'ToolResult').map((event) => event.error_type)).toEqual([
      undefined,
      'denied',
    ])
  })

  const MID_TURN: ScriptedTurn[] = [
    { calls: [call('Slow'), call('Think', { n: 1 }), call('Act', { n: 2 }), call('Act', { n: 3 })] },
    { text: 'Done.' },
  ]

  /** In a turn whose first call runs, and which began with the mode off. */
  async function beginUnasked(slow: Gate, turns = MID_TURN): Promise<Scene> {
    const scene = await setScene(turns, [slow.tool])
    await scene.confirm(false)
    await (await scene.conversation()).post(userText('go', true))
    await slow.entered
    return scene
  }

  test.each(['', 'kill', 'stop'] as const)(
    'turned on in the middle of a turn holds for its calls that have not begun (%s)',
    async (restart) => {
      const slow = gate('Slow')
      await using scene = await beginUnasked(slow)
      await scene.confirm(true)
      slow.open()
      const { request_id, tool_uses } = await requestOf(await scene.conversation())
      expect(
        tool_uses.map((use) => use.input),
        'neither what has run nor what needs nobody',
      ).toEqual([{ n: 2 }, { n: 3 }])
      if (restart) await (restart === 'kill' ? scene.crash() : scene.bench.restart())
      const conversation = await scene.conversation()
      expect(approvalsOf(conversation).pending().items).toMatchObject([{ request_id }])
      await approvalsOf(conversation).decide(request_id, [allow(tool_uses[1]!), deny(tool_uses[0]!, 'not this one')])
      await settled(conversation, 'idle')
      expect(scene.ran.map(({ input }) => input)).toEqual([{ n: 1 }, { n: 3 }])
      expect(slow.calls(), 'what has run does not run again').toBe(1)
      const events = await eventsOf(conversation)
      expect(openedIn(events, 'permission')).toHaveLength(1)
      expectOneResultPerRun(events)
      expectWholeTurns(scene.bench.model.requests.at(-1)!.body.messages)
    },
  )

  test('turned on in the middle of a turn and off again: what already waits keeps waiting', async () => {
    const slow = gate('Slow')
    await using scene = await beginUnasked(slow)
    await scene.confirm(true)
    slow.open()
    const { request_id } = await requestOf(await scene.conversation())
    await scene.confirm(false)
    await scene.crash()
    const conversation = await scene.conversation()
    expect(conversation.state.status).toBe('waiting_for_confirmation')
    await conversation.pause({ interrupt: false })
    expect(await endlessRun(conversation)).toBe('waiting_for_confirmation')
    expect(scene.ran).toEqual([])
    await approvalsOf(conversation).approve(request_id)
    await settled(conversation, 'idle')
    expect(scene.ran.map(({ input }) => input)).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }])
  })

  test('turned off in the middle of a turn revokes no approval and asks no further question', async () => {
    const slow = gate('Slow')
    const scene = await setScene(MID_TURN, [slow.tool])
    await using _ = scene
    const { request_id } = await scene.ask()
    const conversation = await scene.conversation()
    await approvalsOf(conversation).approve(request_id)
    await slow.entered
    await scene.confirm(false)
    await scene.confirm(true)
    slow.open()
    await settled(conversation, 'idle')
    expect(scene.ran.map(({ input }) => input)).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }])
    expect(openedIn(await eventsOf(conversation), 'permission')).toHaveLength(1)
  })

  test('is looked at before each call: whenever it was on before a call began, that call was asked about', async () => {
    const turn = { calls: Array.from({ length: 6 }, (_, n) => call('Switch', { n })) }
    for (const at of [0, 2, 4]) {
      let scene: Scene | undefined
      const begun: number[] = []
      const turnOn = tool('Switch', async ({ n }) => {
        begun.push(n as number)
        if (n === at) await scene!.confirm(true)
        return { output: n }
      })
      scene = await setScene([turn, { text: 'Done.' }], [turnOn])
      await using _ = scene
      await scene.confirm(false)
      await (await scene.conversation()).post(userText('go', true))
      const { tool_uses } = await requestOf(await scene.conversation())
      expect(begun).toEqual(Array.from({ length: at + 1 }, (_, n) => n))
      expect(tool_uses.map((use) => use.input)).toEqual(turn.calls.slice(at + 1).map((one) => one.arguments))
    }
  })

  test('needs no approval for harmless calls or calls that would be refused, but runs none before the turn is decided', async () => {
    await using scene = await setScene([
      { calls: [call('Think', { n: 1 }), call('Nothing'), call('Act', { n: 'x' }), call('Act', '{"n":')] },
      { calls: [call('Think', { n: 2 }), call('Act', { n: 3 })] },
      { text: 'Done.' },
    ])
    const { request_id, tool_uses } = await scene.ask()
    expect(scene.ran).toEqual([{ name: 'Think', input: { n: 1 } }])
    expect(tool_uses.map((use) => use.input)).toEqual([{ n: 3 }])
    const conversation = await scene.conversation()
    await approvalsOf(conversation).approve(request_id)
    await settled(conversation, 'idle')
    expect(scene.ran.map(({ input }) => input)).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }])
  })
})

/** The status that a run comes to which does not end. */
async function endlessRun(conversation: Conversation): Promise<string> {
  const runId = await conversation.run()
  return (await conversation.waitForRun(runId, PATIENCE_S, new AbortController().signal)).status
}

test('an input that is valid only without its nulls would not be refused, so it needs approval', async () => {
  await using scene = await setScene([{ calls: [call('Act', { n: 1, stop: null })] }, { text: 'Done.' }])
  const { request_id, tool_uses } = await scene.ask()
  expect(tool_uses).toMatchObject([{ input: { n: 1, stop: null } }])
  expect(scene.ran).toEqual([])
  const conversation = await scene.conversation()
  await approvalsOf(conversation).approve(request_id)
  await settled(conversation, 'idle')
  expect(scene.ran).toEqual([{ name: 'Act', input: { n: 1 } }])
})

test('the limits of a run hold across its waits: max_steps is not forgotten', async () => {
  await using scene = await setScene([TURN, TURN, TURN, { text: 'Done.' }])
  const conversation = await scene.conversation()
  await conversation.post(userText('go'))
  const runId = await conversation.run({ max_steps: 2 })
  const { request_id } = await requestOf(conversation)
  await approvalsOf(conversation).approve(request_id)
  await until(conversation, 'RequestOpened', (event) => event.request_id !== request_id)
  await scene.crash()
  const again = await scene.conversation()
  await approvalsOf(again).approve((await requestOf(again)).request_id)
  await settled(again, 'paused')
  expect(only(await eventsOf(again), 'Result')).toMatchObject([{ run_id: runId, stop_reason: 'max_steps', steps: 2 }])
})

test('the first of many concurrent decisions counts, equal ones are confirmed, and different ones are refused', async () => {
  await using scene = await setScene([{ calls: [call('Act', { n: 1 })] }, { text: 'Done.' }])
  const { request_id, tool_uses } = await scene.ask()
  const conversation = await scene.conversation()
  const [use] = tool_uses as [Asked['tool_uses'][number]]
  const answers = await Promise.allSettled(
    Array.from({ length: 20 }, (_, i) =>
      approvalsOf(conversation).decide(request_id, [i % 2 ? deny(use, 'no') : allow(use)]),
    ),
  )
  expect(answers.map((one) => (one.status === 'fulfilled' ? 'ok' : one.reason.code))).toEqual(
    answers.map((_, i) => (i % 2 ? 'already_answered' : 'ok')),
  )
  await settled(conversation, 'idle')
  expect(scene.ran).toHaveLength(1)
  expect(decisionsIn(await eventsOf(conversation))).toHaveLength(1)
})

test('the state from meta.json equals the state from the log', async () => {
  await using scene = await setScene()
  const { request_id, tool_uses } = await scene.ask()
  const conversation = await scene.conversation()
  await approvalsOf(conversation).decide(request_id, [allow(tool_uses[0]!, { updated_input: { n: 5 } })])
  const expected = (await eventsOf(conversation)).reduce(fold, EMPTY_STATE)
  await scene.bench.restart()
  expect((await scene.conversation()).state).toEqual(expected)
})

/** What a client, or bad luck, may do. Decisions name one of all requests ever shown, and one of their calls. */
type Action =
  | { kind: 'say'; run: boolean }
  | { kind: 'run' | 'pause' | 'reject' | 'crash' | 'stop' | 'rest' | 'approve' }
  | { kind: 'mode'; on: boolean }
  | { kind: 'decide'; which: number; use: number; allow: boolean; hash: 'right' | 'wrong'; change: boolean }

const actions = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('say' as const), run: fc.boolean() }) },
    { weight: 5, arbitrary: fc.record({ kind: fc.constantFrom('run', 'pause', 'approve', 'rest', 'rest') }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('reject', 'crash', 'stop') }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('mode' as const), on: fc.boolean() }) },
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant('decide' as const),
        which: fc.nat(2),
        use: fc.nat(1),
        allow: fc.boolean(),
        hash: fc.constantFrom('right', 'right', 'wrong'),
        change: fc.boolean(),
      }),
    },
  ),
  // By their size alone fast-check would make most of them too short to get anywhere.
  { minLength: 4, maxLength: 14, size: 'max' },
) as fc.Arbitrary<Action[]>

test('property: after any sequence of actions, no call has run that was not approved as shown', async () => {
  let runs = 0
  await fc.assert(
    fc.asyncProperty(actions, async (plan) => {
      const turns = Array.from({ length: 40 }, (_, i) => {
        return { calls: [call('Act', { n: i * 2 }), call(i % 3 ? 'Act' : 'Think', { n: i * 2 + 1 })] }
      })
      await using scene = await setScene(turns)
      await (await scene.conversation()).post(userText('begin', true))
      for (const action of plan) await carryOut(scene, action)
      const conversation = await scene.conversation()
      await conversation.pause({ interrupt: true })
      const events = await eventsOf(conversation)
      expectAllAllowed(scene.ran, events)
      runs += scene.ran.filter(({ name }) => name === 'Act').length
      expectOneResultPerRun(events)
      const { lastSeq: _, ...state } = conversation.state
      expect(events.reduce(fold, EMPTY_STATE)).toMatchObject(state)
    }),
    // One of which it is known that something is allowed, whatever chance brings.
    {
      numRuns: effort(15, 600),
      examples: [[[{ kind: 'rest' }, { kind: 'approve' }, { kind: 'rest' }]]],
    },
  )
  expect(runs, 'some were allowed').toBeGreaterThan(0)
})

async function carryOut(scene: Scene, action: Action): Promise<void> {
  const conversation = await scene.conversation()
  const approvals = approvalsOf(conversation)
  const act = async () => {
    switch (action.kind) {
      case 'say':
        return await conversation.post(userText('yes', action.run))
      case 'run':
        return await conversation.run()
      case 'pause':
        return await conversation.pause({ interrupt: false })
      case 'reject':
        return await approvals.reject('no')
      case 'approve':
        return await approvals.approve(approvals.pending().items[0]?.request_id ?? uuid7())
      case 'rest':
        for (let ms = 0; ms < 60 && conversation.state.status === 'running'; ms += 2) await takeTime(2)
        return undefined
      case 'crash':
        return await scene.crash()
      case 'stop':
        return await scene.bench.restart()
      case 'mode':
        return await scene.confirm(action.on)
      case 'decide': {
        const shown = openedIn(await eventsOf(conversation), 'permission').at(-1 - action.which)
        const use = shown?.payload.tool_uses[action.use % shown.payload.tool_uses.length]
        if (!shown || !use) return
        const input_hash = action.hash === 'right' ? use.input_hash : hashInput(use.name, { n: -1 })
        const updated = action.change && action.allow ? { updated_input: { n: 1000 } } : {}
        const behavior = action.allow ? 'allow' : 'deny'
        return await approvals.decide(shown.request_id, [
          { tool_use_id: use.tool_use_id, input_hash, behavior, ...updated },
        ])
      }
    }
  }
  await act().catch((error: unknown) => expect(error).toMatchObject({ name: 'Problem' }))
}

/** From the log alone, without the fold: the mode and the decisions as they stood before each call's result. */
function expectAllAllowed(ran: Ran, events: readonly Event[]): void {
  let wasOff = false
  const shown = new Map<string, string>()
  const allowed = new Set<string>()
  for (const event of events) {
    if (event.type === 'ConfigUpdate') wasOff ||= event.changes['confirmation_mode'] === false
    if (event.type === 'RequestOpened' && event.kind === 'permission')
      for (const use of event.payload.tool_uses) {
        expect(use.input_hash).toBe(hashInput(use.name, use.input))
        shown.set(`${event.request_id} ${use.tool_use_id}`, use.input_hash)
        if (wasOff) continue
        const named = only(events, 'ToolUse').find((one) => one.tool_use_id === use.tool_use_id)
        expect(named?.input).toEqual(use.input)
      }
    for (const decision of decisionsIn([event])) {
      if (decision.behavior !== 'allow') continue
      expect(decision.answered_by).toBe('user')
      expect(decision.input_hash).toBe(shown.get(`${decision.request_id} ${decision.tool_use_id}`))
      const input = decision.updated_input ?? inputOf(events, decision.tool_use_id)
      allowed.add(hashInput('Act', input))
    }
  }
  if (wasOff) return
  for (const { name, input } of ran) if (name === 'Act') expect(allowed).toContain(hashInput(name, input))
  const inputs = ran
    .filter(({ input }) => (input as { n: number }).n !== 1000)
    .map(({ input }) => JSON.stringify(input))
  expect(new Set(inputs).size, 'none of them runs twice').toBe(inputs.length)
}

function inputOf(events: readonly Event[], toolUseId: string): unknown {
  return only(events, 'ToolUse').find((event) => event.tool_use_id === toolUseId)?.input
}
