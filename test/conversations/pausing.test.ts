import { describe, expect, test } from 'vitest'
import { RunCommand } from '../../src/contract/values/command.ts'
import type { EventOf } from '../../src/contract/events/event.ts'
import type { ClientCommands } from '../../src/workspace/exec/client-commands.ts'
import type { Conversation } from '../../src/conversations/conversation.ts'
import type { ScriptedTurn } from '../../src/llm/scripted/script.ts'
import type { Bench, Gate } from './fixtures.ts'
import { call, endOf, eventsOf, gate, only, realShells, setBench, tool, until, userText } from './fixtures.ts'
import { mortalStore } from './mortal-store.ts'
import { expectWholeTurns } from './wire.ts'
import { takeTime } from '../support/take-time.ts'
import { approvalsOf, decisionsIn } from '../support/answering.ts'

type Scene = AsyncDisposable & {
  bench: Bench
  id: string
  /** As it is after a restart, too. */
  conversation: () => Promise<Conversation>
  slow: Gate
  /** The calls of `Act`, by their number. */
  acted: number[]
  /** Resolves while the first call of the turn runs and the others have not begun. */
  enterTurn: () => Promise<Conversation>
  /** As `kill -9`, or as a stop of the server. */
  restart: (how: 'kill' | 'stop') => Promise<void>
}

const TURN: ScriptedTurn = { calls: [call('Slow'), call('Act', { n: 1 }), call('Act', { n: 2 })] }

async function setScene(fields: object = {}, turns: ScriptedTurn[] = [TURN, { text: 'Done.' }]): Promise<Scene> {
  const slow = gate('Slow')
  const acted: number[] = []
  const act = tool('Act', ({ n }) => ({ output: `acted ${acted.push(n as number)}` }))
  const store = mortalStore()
  const bench = await setBench({ logs: store, script: turns, tools: [slow.tool, act] })
  const id = await bench.create(fields)
  const conversation = () => bench.manager.open(id)
  return {
    bench,
    id,
    conversation,
    slow,
    acted,
    async enterTurn() {
      const entered = await conversation()
      await entered.post(userText('go', true))
      await slow.entered
      return entered
    },
    restart: (how) => bench.restart(how === 'kill' ? { kill: true, between: store.die } : {}),
    [Symbol.asyncDispose]: () => bench[Symbol.asyncDispose](),
  }
}

const runOn = async (conversation: Conversation) => await endOf(conversation, await conversation.run())

/** What the calls of the turn came to, in the order of the calls. */
async function outcomes(conversation: Conversation): Promise<(string | undefined)[]> {
  const events = await eventsOf(conversation)
  const results = only(events, 'ToolResult')
  return only(events, 'ToolUse').map((use) => {
    const own = results.filter((result) => result.tool_use_id === use.tool_use_id)
    expect(own, 'exactly one result for each call').toHaveLength(1)
    return own[0]!.error_type ?? 'ran'
  })
}

/** What the model was sent last: each call next to its result, then what was said since. */
function lastRead({ model }: Bench): string[] {
  const { messages } = model.requests.at(-1)!.body
  expectWholeTurns(messages)
  return messages.slice(1).map(({ role, content }) => {
    return role === 'user' ? `user: ${typeof content === 'string' ? content : JSON.stringify(content)}` : role
  })
}

const TURN_READ = ['user: go', 'assistant', 'tool', 'tool', 'tool']

describe('a turn that was paused while its first call ran', () => {
  test('continues with `run`: that call is awaited, and the others begin', async () => {
    await using scene = await setScene()
    const conversation = await scene.enterTurn()
    expect(await conversation.pause({ interrupt: false })).toBe('paused')
    const run = await conversation.run()
    expect(scene.acted, 'not while the first one runs').toEqual([])
    scene.slow.open()
    expect(await endOf(conversation, run)).toMatchObject({ stop_reason: 'completed' })
    expect(await outcomes(conversation)).toEqual(['ran', 'ran', 'ran'])
    expect(scene.acted).toEqual([1, 2])
  })

  test.each([
    ['and run', 'run'],
    ['that asks for a run', 'message with run'],
    ['and another message, and run', 'two messages'],
  ] as const)('does not continue after a message %s: the model reads it first', async (_, how) => {
    await using scene = await setScene()
    const conversation = await scene.enterTurn()
    await conversation.pause({ interrupt: false })
    const { run_id } = await conversation.post(userText('do not act', how === 'message with run'))
    if (how === 'two messages') await conversation.post(userText('please'))
    const run = run_id ?? (await conversation.run())
    scene.slow.open()
    expect(await endOf(conversation, run)).toMatchObject({ stop_reason: 'completed' })
    expect(await outcomes(conversation)).toEqual(['ran', 'interrupted', 'interrupted'])
    expect(scene.acted).toEqual([])
    expect(lastRead(scene.bench)).toEqual([
      ...TURN_READ,
      'user: do not act',
      ...(how === 'two messages' ? ['user: please'] : []),
    ])
  })

  test.each([
    ['with interrupt', [true]],
    ['and then once more, with interrupt', [false, true]],
    ['twice with interrupt', [true, true]],
  ])(
    '%s does not continue: the running call is ended, and the model reads that the others never began',
    async (_, how) => {
      await using scene = await setScene()
      const conversation = await scene.enterTurn()
      for (const interrupt of how) expect(await conversation.pause({ interrupt })).toBe('paused')
      expect(await outcomes(conversation), 'already now').toEqual(['interrupted', 'interrupted', 'interrupted'])
      expect(only(await eventsOf(conversation), 'Result')).toHaveLength(1)
      expect(await runOn(conversation)).toMatchObject({ stop_reason: 'completed' })
      expect(scene.acted).toEqual([])
      expect(lastRead(scene.bench)).toEqual(TURN_READ)
    },
  )

  test('stays as it is after a second pause without interrupt', async () => {
    await using scene = await setScene()
    const conversation = await scene.enterTurn()
    for (let n = 0; n < 2; n++) expect(await conversation.pause({ interrupt: false })).toBe('paused')
    scene.slow.open()
    await runOn(conversation)
    expect(scene.acted).toEqual([1, 2])
  })

  test.each(['kill', 'stop'] as const)(
    'has ended when the server was restarted by a %s, with and without a message',
    async (how) => {
      for (const says of [true, false]) {
        await using scene = await setScene()
        await (await scene.enterTurn()).pause({ interrupt: false })
        await scene.restart(how)
        const conversation = await scene.conversation()
        expect(conversation.state).toMatchObject({ status: 'paused', openCalls: [] })
        if (says) await conversation.post(userText('do not act'))
        expect(await runOn(conversation)).toMatchObject({ stop_reason: 'completed' })
        expect(await outcomes(conversation)).toEqual(['interrupted', 'interrupted', 'interrupted'])
        expect(scene.acted).toEqual([])
        expect(lastRead(scene.bench)).toEqual([...TURN_READ, ...(says ? ['user: do not act'] : [])])
      }
    },
  )

  test.each(['kill', 'stop'] as const)('stays interrupted when the message came before the %s', async (how) => {
    await using scene = await setScene()
    const paused = await scene.enterTurn()
    await paused.pause({ interrupt: false })
    await paused.post(userText('do not act'))
    await scene.restart(how)
    const conversation = await scene.conversation()
    expect(await runOn(conversation)).toMatchObject({ stop_reason: 'completed' })
    expect(await outcomes(conversation)).toEqual(['interrupted', 'interrupted', 'interrupted'])
    expect(lastRead(scene.bench)).toEqual([...TURN_READ, 'user: do not act'])
  })
})

test('a stop of the server in a turn cancels what has not begun; the continued run asks the model', async () => {
  await using scene = await setScene({ resume_on_start: true })
  await scene.enterTurn()
  await scene.restart('stop')
  const conversation = await scene.conversation()
  await until(conversation, 'Result', (event) => event.stop_reason === 'completed')
  expect(await outcomes(conversation)).toEqual(['interrupted', 'interrupted', 'interrupted'])
  expect(scene.acted).toEqual([])
})

test('a pause in a model call leaves nothing open: the next request has the message', async () => {
  await using scene = await setScene({}, [{ text: 'Never said.', delay_ms: 60_000 }])
  const conversation = await scene.conversation()
  await conversation.post(userText('go', true))
  await expect.poll(() => scene.bench.model.requests.length).toBe(1)
  expect(await conversation.pause({ interrupt: false })).toBe('paused')
  await conversation.post(userText('something else', true))
  await expect.poll(() => scene.bench.model.requests.length).toBe(2)
  expect(lastRead(scene.bench)).toEqual(['user: go', 'user: something else'])
})

test('a message while the run is at work is read at the end of the turn, whose calls all run', async () => {
  await using scene = await setScene()
  const conversation = await scene.enterTurn()
  await conversation.post(userText('by the way'))
  scene.slow.open()
  await until(conversation, 'Result')
  expect(await outcomes(conversation)).toEqual(['ran', 'ran', 'ran'])
  expect(lastRead(scene.bench)).toEqual([...TURN_READ, 'user: by the way'])
})

test('a tool that ignores the interrupt gets one result, its own; the other calls never begin', async () => {
  const deaf = gate('Deaf', { stubborn: true })
  const acted: unknown[] = []
  await using bench = await setBench({
    tools: [deaf.tool, tool('Act', (input) => ({ output: `acted ${acted.push(input)}` }))],
    script: [{ calls: [call('Deaf'), call('Act')] }, { text: 'Done.' }],
  })
  const conversation = await bench.converse()
  await conversation.post(userText('go', true))
  await deaf.entered
  await conversation.pause({ interrupt: true })
  await conversation.post(userText('do not act'))
  const run = await conversation.run()
  deaf.open()
  expect(await endOf(conversation, run)).toMatchObject({ stop_reason: 'completed' })
  expect(await outcomes(conversation)).toEqual(['ran', 'interrupted'])
  expect(acted).toEqual([])
  expect(lastRead(bench)).toEqual(['user: go', 'assistant', 'tool', 'tool', 'user: do not act'])
})

describe('a request for permission', () => {
  const ASKED: ScriptedTurn[] = [{ calls: [call('Act', { n: 1 }), call('Act', { n: 2 })] }, { text: 'Done.' }]

  async function ask(): Promise<{ scene: Scene; conversation: Conversation; requestId: string }> {
    const scene = await setScene({ confirmation_mode: true }, ASKED)
    const conversation = await scene.conversation()
    await conversation.post(userText('go', true))
    await until(conversation, 'StatusUpdate', (event) => event.status === 'waiting_for_confirmation')
    return { scene, conversation, requestId: approvalsOf(conversation).pending().items[0]!.request_id }
  }

  test('keeps waiting after a pause; approved then, its calls begin with `run`', async () => {
    const { scene, conversation, requestId } = await ask()
    await using _ = scene
    await conversation.pause({ interrupt: false })
    expect(await approvalsOf(conversation).approve(requestId)).toEqual({ status: 'paused', pending: 0 })
    expect(scene.acted).toEqual([])
    await runOn(conversation)
    expect(scene.acted).toEqual([1, 2])
  })

  test('approved during a pause and followed by a message: the approved calls are interrupted, also after a kill', async () => {
    for (const killed of [false, true]) {
      const { scene, conversation: asking, requestId } = await ask()
      await using _ = scene
      await asking.pause({ interrupt: false })
      await approvalsOf(asking).approve(requestId)
      if (killed) await scene.restart('kill')
      const conversation = await scene.conversation()
      await conversation.post(userText('do not act'))
      await runOn(conversation)
      expect(await outcomes(conversation)).toEqual(['interrupted', 'interrupted'])
      expect(scene.acted).toEqual([])
      expect(lastRead(scene.bench)).toEqual(['user: go', 'assistant', 'tool', 'tool', 'user: do not act'])
    }
  })

  test.each(['a message', 'interrupt'] as const)(
    'ends by %s during the pause: a later approval decides nothing',
    async (by) => {
      const { scene, conversation, requestId } = await ask()
      await using _ = scene
      await conversation.pause({ interrupt: by === 'interrupt' })
      if (by === 'a message') await conversation.post(userText('do not act'))
      expect(approvalsOf(conversation).pending().items).toEqual([])
      await expect(approvalsOf(conversation).reject()).rejects.toMatchObject({ code: 'nothing_pending' })
      const events = await eventsOf(conversation)
      expect(decisionsIn(events)).toEqual([])
      const reason = by === 'interrupt' ? 'interrupted' : 'message'
      expect(only(events, 'RequestClosed')).toMatchObject([{ kind: 'permission', request_id: requestId, reason }])
      await runOn(conversation)
      expect(await outcomes(conversation)).toEqual(['interrupted', 'interrupted'])
      expect(scene.acted).toEqual([])
    },
  )
})

describe('a run that reached its time limit in the middle of a turn', () => {
  const failed = (conversation: Conversation) =>
    until(conversation, 'StatusUpdate', (event: EventOf<'StatusUpdate'>) => event.status === 'error')

  test('has given up what had not begun: the next run asks the model', async () => {
    await using scene = await setScene()
    const conversation = await scene.enterTurn()
    // Only now: on a machine with much to do it would have run out before the turn began.
    await scene.bench.configure(scene.id, { max_seconds_per_run: 0.001 })
    await failed(conversation)
    await scene.bench.configure(scene.id, { max_seconds_per_run: 600 })
    expect(await runOn(conversation)).toMatchObject({ stop_reason: 'completed' })
    expect(await outcomes(conversation)).toEqual(['interrupted', 'interrupted', 'interrupted'])
    expect(scene.acted).toEqual([])
  })
})

test.each(['closing', 'deleted'] as const)(
  'no call begins in a conversation that is %s, even while other work in it is still ending',
  async (how) => {
    const acted: unknown[] = []
    const act = tool('Act', async (input) => {
      await takeTime(5)
      return { output: `acted ${acted.push(input)}` }
    })
    const calls = Array.from({ length: 120 }, (_, n) => call('Act', { n }))
    await using bench = await setBench({ deps: { createShells: realShells() }, tools: [act], script: [{ calls }] })
    const id = await bench.create()
    const conversation = await bench.manager.open(id)
    const { commands } = conversation.exec
    // It takes a while to end: it heeds none of the signals that it is sent first.
    const stubborn = `trap '' INT TERM HUP; echo on; while :; do sleep 0.1; done`
    const { command_id } = await commands.start(RunCommand.parse({ command: stubborn, background: true }))
    await expect.poll(async () => (await outputOf(commands, command_id)).text).toContain('on')
    await conversation.post(userText('go', true))
    await expect.poll(() => acted.length).toBeGreaterThan(2)
    const ended = conversation.dispose(how)
    const begun = acted.length + 1
    await ended
    expect(acted.length).toBeLessThanOrEqual(begun)
  },
)

const outputOf = (commands: ClientCommands, id: string) => {
  const query = { stream: 'stdout', offset: 0, max_bytes: 1000, wait: 0 } as const
  return commands.output(id, query, new AbortController().signal)
}
