import { describe, expect, test } from 'vitest'
import type { EventDraft, EventType, Status, StopReason } from '../../src/contract/event.ts'
import { EVENT_VERSION, Status as StatusSchema, StopReason as StopReasonSchema } from '../../src/contract/event.ts'
import type { ProblemCode } from '../../src/contract/problem.ts'
import { Problem } from '../../src/contract/problem.ts'
import type { Command } from '../../src/conversations/commands.ts'
import { decide } from '../../src/conversations/commands.ts'
import type { State } from '../../src/conversations/state.ts'
import { START_MS, answered, folded, runId, status, toolResult, toolUse, userMessage } from './events.ts'

const STATUSES = StatusSchema.options
const AT_REST = ['idle', 'paused', 'finished', 'error', 'cancelled'] as const satisfies Status[]
const newRunId = '018f0000-0000-7000-8000-00000000000c'
const now = START_MS + 60_000

/** A conversation whose run has come to this status. */
const inStatus = (to: Status, ...more: EventDraft[]) =>
  folded([userMessage('go', true), status('running'), answered({ text: 'one' }), status(to, 'running'), ...more])

function typesOf(outcome: EventDraft[] | Problem): EventType[] {
  if (outcome instanceof Problem) throw outcome
  return outcome.map((draft) => draft.type)
}

const commandOf = {
  message: { kind: 'message', content: [{ type: 'text', text: 'hi' }], run: false, newRunId },
  'message with run': { kind: 'message', content: [{ type: 'text', text: 'hi' }], run: true, newRunId },
  run: { kind: 'run', newRunId },
  pause: { kind: 'pause', reason: 'pause', now },
  configure: { kind: 'configure', changes: { title: 'new' } },
  'configure the workdir': { kind: 'configure', changes: { workdir: '/other' } },
  recover: { kind: 'recover', now },
} as const satisfies Record<string, Command>

/** Command -> status before -> the types of the events and the status after, or the problem. */
const TABLE: Record<keyof typeof commandOf, Record<Status, { events: EventType[]; to: Status } | ProblemCode>> = {
  message: {
    ...each(AT_REST, (from) => ({ events: ['UserMessage'], to: from })),
    running: { events: ['UserMessage'], to: 'running' },
    waiting_for_confirmation: { events: ['UserMessage', 'StatusUpdate'], to: 'idle' },
    waiting_for_input: { events: ['UserMessage', 'StatusUpdate'], to: 'idle' },
  },
  'message with run': {
    ...each(AT_REST, () => ({ events: ['UserMessage', 'StatusUpdate'], to: 'running' })),
    running: { events: ['UserMessage'], to: 'running' },
    waiting_for_confirmation: { events: ['UserMessage', 'StatusUpdate'], to: 'running' },
    waiting_for_input: { events: ['UserMessage', 'StatusUpdate'], to: 'running' },
  },
  run: {
    ...each(AT_REST, () => ({ events: ['StatusUpdate'], to: 'running' })),
    running: 'already_running',
    waiting_for_confirmation: 'waiting_for_confirmation',
    waiting_for_input: 'waiting_for_input',
  },
  pause: {
    ...each(AT_REST, (from) => ({ events: [], to: from })),
    running: { events: ['Result', 'StatusUpdate'], to: 'paused' },
    waiting_for_confirmation: { events: ['StatusUpdate'], to: 'paused' },
    waiting_for_input: { events: ['StatusUpdate'], to: 'paused' },
  },
  configure: each(STATUSES, (from) => ({ events: ['ConfigUpdate'], to: from })),
  'configure the workdir': {
    ...each(STATUSES, (from) => ({ events: ['ConfigUpdate'], to: from })),
    running: 'conversation_running',
  },
  recover: {
    ...each(AT_REST, (from) => ({ events: [], to: from })),
    running: { events: ['Result', 'StatusUpdate'], to: 'paused' },
    waiting_for_confirmation: { events: [], to: 'waiting_for_confirmation' },
    waiting_for_input: { events: [], to: 'waiting_for_input' },
  },
}

function each<S extends Status, T>(statuses: readonly S[], make: (status: S) => T): Record<S, T> {
  return Object.fromEntries(statuses.map((status) => [status, make(status)])) as Record<S, T>
}

describe.each(Object.entries(TABLE) as [keyof typeof commandOf, (typeof TABLE)['run']][])('%s', (name, row) => {
  test.each(STATUSES)('while %s', (from) => {
    const before = inStatus(from)
    const outcome = decide(before, commandOf[name])
    const expected = row[from]
    if (typeof expected === 'string') return expect(outcome).toMatchObject({ code: expected })
    expect(typesOf(outcome)).toEqual(expected.events)
    const after = folded(outcome as EventDraft[], before)
    expect(after.status).toBe(expected.to)
    expect(after.run?.id).toBe(
      after.status === 'running' && from !== 'running' ? newRunId : before.run && after.run && runId,
    )
  })
})

test('each StatusUpdate tells the status it follows', () => {
  for (const from of STATUSES) {
    for (const command of Object.values(commandOf)) {
      const outcome = decide(inStatus(from), command)
      if (outcome instanceof Problem) continue
      for (const draft of outcome) if (draft.type === 'StatusUpdate') expect(draft.previous_status).toBe(from)
    }
  }
})

describe('what another version wrote', () => {
  const newer: State = { ...inStatus('idle'), version: EVENT_VERSION + 1 }

  test.each(['message', 'message with run', 'run'] as const)('%s is refused, saying why', (name) => {
    expect(decide(newer, commandOf[name])).toMatchObject({
      code: 'conversation_from_newer_version',
      message: expect.stringContaining('newer version'),
    })
  })

  test('pausing and recovering it are still possible', () => {
    expect(typesOf(decide({ ...newer, ...inStatus('running'), version: 2 }, commandOf.pause))).toEqual([
      'Result',
      'StatusUpdate',
    ])
  })
})

describe('refusals', () => {
  test('a running conversation tells the run that is under way', () => {
    expect(decide(inStatus('running'), commandOf.run)).toMatchObject({
      code: 'already_running',
      details: { run_id: runId },
    })
  })

  test('a waiting one tells what is pending: running is never an approval', () => {
    const waiting = folded([
      status('running'),
      answered({ calls: ['a'] }),
      toolUse('a'),
      status('waiting_for_confirmation', 'running'),
    ])
    expect(decide(waiting, commandOf.run)).toMatchObject({ details: { pending: [{ tool_use_id: 'a', name: 'Bash' }] } })
  })

  test('the workdir stays while a call that a pause left running is not over', () => {
    const paused = folded([status('running'), answered({ calls: ['a'] }), toolUse('a'), status('paused', 'running')])
    expect(decide(paused, commandOf['configure the workdir'])).toMatchObject({ code: 'conversation_running' })
    expect(typesOf(decide(folded([toolResult('a')], paused), commandOf['configure the workdir']))).toEqual([
      'ConfigUpdate',
    ])
  })

  test('a configuration that changes nothing stores nothing', () => {
    expect(decide(inStatus('idle'), { kind: 'configure', changes: {} })).toEqual([])
  })
})

test('a message supersedes what waits for a decision: it is rejected, never approved', () => {
  for (const waiting of ['waiting_for_confirmation', 'waiting_for_input'] as const) {
    for (const name of ['message', 'message with run'] as const) {
      const before = folded([
        status('running'),
        answered({ calls: ['a', 'b'] }),
        toolUse('a'),
        toolUse('b'),
        status(waiting, 'running'),
      ])
      const outcome = decide(before, commandOf[name]) as EventDraft[]
      expect(outcome.slice(0, 2)).toMatchObject(
        ['a', 'b'].map((tool_use_id) => ({ type: 'ToolResult', tool_use_id, is_error: true, error_type: 'rejected' })),
      )
      expect(folded(outcome, before).openCalls).toEqual([])
    }
  }
})

describe('the end of a run', () => {
  const end = (stopReason: StopReason, requestedAt = 100): Command => ({
    kind: 'end_run',
    runId,
    stopReason,
    requestedAt,
    newRunId,
    now,
  })
  const running = folded([userMessage('go', true), status('running'), answered({ text: 'one' })])

  test.each(StopReasonSchema.options)('%s: one Result, then the status it leads to', (stopReason) => {
    const outcome = decide(running, end(stopReason)) as EventDraft[]
    expect(outcome).toMatchObject([
      { type: 'Result', run_id: runId, stop_reason: stopReason, final_text: 'one', steps: 1, duration_ms: 58_000 },
      { type: 'StatusUpdate', run_id: runId, previous_status: 'running', reason: stopReason },
    ])
    expect(folded(outcome, running).run).toBeUndefined()
  })

  test('what the agent said by finishing is the final text; where it said nothing, its last message is', () => {
    const said = (finalText: string) =>
      (decide(running, { ...end('finished'), finalText } as Command) as EventDraft[])[0]
    expect(said('All done.')).toMatchObject({ type: 'Result', stop_reason: 'finished', final_text: 'All done.' })
    expect(said('')).toMatchObject({ final_text: 'one' })
  })

  test('a failure is told before the Result', () => {
    const failure = { type: 'network', message: 'It broke.', retryable: true } as const
    expect(decide(running, { ...end('error'), failure } as Command)).toMatchObject([
      { type: 'ErrorEvent', run_id: runId, error_type: 'network', message: 'It broke.', retryable: true },
      { type: 'Result', stop_reason: 'error' },
      { type: 'StatusUpdate', status: 'error' },
    ])
  })

  describe('with a message that asked for a run and was not read', () => {
    const unread = folded([userMessage('and then?', true)], running)
    const requestedAt = running.lastSeq

    test.each(['completed', 'finished'] as const)('%s: the run goes on', (stopReason) => {
      expect(decide(unread, end(stopReason, requestedAt))).toEqual([])
    })

    test.each(['max_steps', 'iteration_limit', 'time_limit', 'error'] as const)(
      '%s: the run ends, and the message gets one of its own',
      (stopReason) => {
        const outcome = decide(unread, end(stopReason, requestedAt)) as EventDraft[]
        expect(typesOf(outcome)).toEqual(['Result', 'StatusUpdate', 'StatusUpdate'])
        expect(outcome.at(-1)).toMatchObject({
          status: 'running',
          run_id: newRunId,
          reason: 'message',
          previous_status: (outcome.at(-2) as { status: Status }).status,
        })
      },
    )

    test('a message that asked for none ends nothing and starts nothing', () => {
      const noted = folded([userMessage('by the way')], running)
      expect(typesOf(decide(noted, end('completed', requestedAt)))).toEqual(['Result', 'StatusUpdate'])
    })
  })

  describe('of a run that came to no model request', () => {
    test('a failure ends it: the message that started it does not start it again and again', () => {
      expect(typesOf(decide(running, end('error', 0)))).toEqual(['Result', 'StatusUpdate'])
    })

    test('a message that came after its start gets a run of its own', () => {
      expect(typesOf(decide(folded([userMessage('more', true)], running), end('error', 0)))).toEqual([
        'Result',
        'StatusUpdate',
        'StatusUpdate',
      ])
    })

    test('a tool that finishes does not: the message that started it has not been read', () => {
      expect(decide(running, end('finished', 0))).toEqual([])
    })
  })
})

describe('recovery', () => {
  const cutOff = folded([
    status('running'),
    answered({ calls: ['a', 'b'] }),
    toolUse('a'),
    toolUse('b'),
    toolResult('a'),
  ])

  test('answers each call that was cut off, as interrupted, and pauses the run with its Result', () => {
    const outcome = decide(cutOff, commandOf.recover) as EventDraft[]
    expect(outcome).toMatchObject([
      { type: 'ToolResult', tool_use_id: 'b', run_id: runId, is_error: true, error_type: 'interrupted' },
      { type: 'Result', run_id: runId, stop_reason: 'server_restart', steps: 1 },
      { type: 'StatusUpdate', status: 'paused', reason: 'server_restart' },
    ])
    expect(decide(folded(outcome, cutOff), commandOf.recover), 'a second time there is nothing to do').toEqual([])
  })

  test('answers a call that a pause had left running', () => {
    const paused = folded([status('paused', 'running')], cutOff)
    expect(typesOf(decide(paused, commandOf.recover))).toEqual(['ToolResult'])
  })

  test('leaves alone what waits for a decision: it has not run', () => {
    expect(decide(folded([status('waiting_for_confirmation', 'running')], cutOff), commandOf.recover)).toEqual([])
  })
})
