/** A subagent that waits for somebody, next to one that works: a stop of the server, or a `reject`, ends one of them only. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { decisionsFor } from '../support/answering-over-http.ts'
import { createPlanner, expectWhole, ofMain, ofSubagents, task } from '../support/subagents.ts'
import { until } from '../support/until.ts'
import { answer, requestsOf } from './requests.ts'

const planner = createPlanner()
let stage: Stage
beforeAll(async () => {
  stage = await setStage(planner.script, {})
})
afterAll(() => stage[Symbol.asyncDispose]())

const call: Stage['server']['call'] = (...args) => stage.server.call(...args)
const viewOf = async (id: string) => (await call('GET', `/conversations/${id}`)).body
const untilStatus = (id: string, status: string) => until(status, async () => (await viewOf(id)).status === status)

const lookUp = { calls: [{ name: 'look_up', arguments: {} }] }
const works = bash('echo began >> began; sleep 100')

type Kind = 'client_tool' | 'permission'
const WAITS = { client_tool: lookUp, permission: bash('touch asked') } as const

const FIELDS = {
  agents: {
    worker: { description: 'Works.', prompt: 'You are a worker.' },
    boss: { description: 'Delegates.', prompt: 'You delegate.', tools: ['Task', 'Bash', 'look_up'] },
  },
  subagent_limits: { max_depth: 2 },
  tools: ['Bash'],
  client_tools: [{ name: 'look_up', description: '', input_schema: { type: 'object' } }],
  permission_rules: { ask: ['Bash(touch:*)'] },
}

type Place = { id: string; workdir: string; request: Awaited<ReturnType<typeof requestsOf>>[number] }

/** Resolves when the request waits, and so many commands of others run. */
async function begin(text: string, kind: Kind, commands = 1): Promise<Place> {
  const id = await stage.create(FIELDS)
  const { workdir } = await viewOf(id)
  await call('POST', `/conversations/${id}/messages`, { message: { role: 'user', content: text }, run: true })
  await until('the commands', async () => (await beganIn(workdir)) === commands)
  const request = await until('the request', async () => (await requestsOf(call, id, kind))[0])
  return { id, workdir, request }
}

const beganIn = async (workdir: string) =>
  (await readFile(join(workdir, 'began'), 'utf8').catch(() => '')).split('\n').length - 1

const answerTo = (request: Place['request']) =>
  request.kind === 'permission'
    ? decisionsFor(request, { behavior: 'allow' })
    : { kind: 'client_tool', output: 'it is there' }

async function finish({ id, request }: Place): Promise<void> {
  expect(await answer(call, id, request.request_id, answerTo(request))).toMatchObject({ status: 200 })
  await untilStatus(id, 'idle')
}

const KINDS = ['client_tool', 'permission'] as const
const STATUS = { client_tool: 'waiting_for_client', permission: 'waiting_for_confirmation' } as const

/** After the restart: the request still waits, and its answer continues the subagent and then its run. */
async function continueWith(kind: Kind, place: Place) {
  const { id, request } = place
  await untilStatus(id, STATUS[kind])
  expect(await requestsOf(call, id, kind)).toEqual([request])
  await finish(place)
  const events = await stage.events(id)
  expectWhole(events)
  expect(ofMain(events, 'Result')).toMatchObject([{ stop_reason: 'completed', final_text: 'All is told.' }])
  return events
}

const endsIn = (events: Awaited<ReturnType<Stage['events']>>) =>
  ofSubagents(events, 'Result').map(({ stop_reason, final_text }) => [stop_reason, final_text].join(': '))

describe.each(['SIGKILL', 'SIGTERM'] as const)('%s', (signal) => {
  test('what has ended next to one that works and one that waits has its result already', async () => {
    planner.plan = {
      'three parts': [
        { calls: [task('the working part'), task('the waiting part'), task('the quick part')] },
        { text: 'All is told.' },
      ],
      'the working part': [works, { text: 'It worked.' }],
      'the waiting part': [WAITS.client_tool, { text: 'It waited.' }],
      'the quick part': [{ text: 'It was quick.' }],
    }
    const place = await begin('three parts', 'client_tool')
    const results = async () => ofMain(await stage.events(place.id), 'ToolResult')
    await until('the result', async () => (await results()).length === 1)
    await stage.server.restart(signal)

    await continueWith('client_tool', place)
    expect((await results()).map(({ error_type, output }) => [error_type, JSON.stringify(output)])).toEqual([
      [undefined, expect.stringContaining('It was quick.')],
      ['interrupted', expect.stringContaining('call Task with resume')],
      [undefined, expect.stringContaining('It waited.')],
    ])
  })

  test('what a subagent waits for waits on, also below another one, and what works next to it is interrupted', async () => {
    const parts = (kind: Kind) => [task(`the waiting part, ${kind}`), task('the working part')]
    planner.plan = {
      ...Object.fromEntries(
        KINDS.flatMap((kind) => [
          [`beside, ${kind}`, [{ calls: parts(kind).toReversed() }, { text: 'All is told.' }]],
          [`below, ${kind}`, [{ calls: [below(kind), behind] }, { text: 'All is told.' }]],
          [`the middle part, ${kind}`, [{ calls: parts(kind) }, { text: 'The middle.' }]],
          [`the waiting part, ${kind}`, [WAITS[kind], { text: 'It waited.' }]],
        ]),
      ),
      'the working part': [works, { text: 'It worked.' }],
      'the part behind': [works, { text: 'It worked.' }],
    }
    const beside = await Promise.all(KINDS.map((kind) => begin(`beside, ${kind}`, kind, 1)))
    const nested = await Promise.all(KINDS.map((kind) => begin(`below, ${kind}`, kind, 2)))
    await stage.server.restart(signal)

    for (const [at, place] of beside.entries()) {
      const events = await continueWith(KINDS[at]!, place)
      expect(endsIn(events)).toEqual(['server_restart: ', 'completed: It waited.'])
      const results = ofMain(events, 'ToolResult').map(({ error_type, output }) => [error_type, JSON.stringify(output)])
      expect(results).toEqual([
        ['interrupted', expect.stringContaining('call Task with resume')],
        [undefined, expect.stringContaining('It waited.')],
      ])
      expect(await beganIn(place.workdir), 'the command ran once').toBe(1)
    }
    for (const [at, place] of nested.entries()) {
      const events = await continueWith(KINDS[at]!, place)
      expect(endsIn(events).toSorted()).toEqual([
        'completed: It waited.',
        'completed: The middle.',
        'server_restart: ',
        'server_restart: ',
      ])
      expect(await beganIn(place.workdir), 'each command ran once').toBe(2)
    }
  })
})

const below = (kind: Kind) => task(`the middle part, ${kind}`, { subagent_type: 'boss' })
/** Its call has no result before that of the call beside it. */
const behind = task('the part behind', { run_in_background: true })

describe('`reject` ends the subagent that asks, and the agents of which all subagents do', () => {
  test('a command of another runs on, and its run continues', async () => {
    planner.plan = {
      'two parts': [{ calls: [task('the working part'), task('the waiting part')] }, { text: 'Both are told.' }],
      'the working part': [bash('echo began >> began; until [ -e go ]; do sleep 0.1; done'), { text: 'It worked.' }],
      'the waiting part': [WAITS.permission, { text: 'It waited.' }],
    }
    const { id, workdir, request } = await begin('two parts', 'permission')
    const rejected = await call('POST', `/conversations/${id}/reject`, { reason: 'not that' })
    expect(rejected).toMatchObject({ status: 200, body: { status: 'running', pending: 0 } })
    expect((await call('POST', `/conversations/${id}/reject`)).body.error).toBe('nothing_pending')
    expect(await answer(call, id, request.request_id, answerTo(request))).toMatchObject({
      status: 409,
      body: { error: 'request_closed' },
    })
    await writeFile(join(workdir, 'go'), '')
    await untilStatus(id, 'idle')
    const events = await stage.events(id)
    expectWhole(events)
    const ends = ofSubagents(events, 'Result').map(({ stop_reason, final_text }) => [stop_reason, final_text])
    expect(ends).toEqual([
      ['rejected', ''],
      ['completed', 'It worked.'],
    ])
    expect(ofMain(events, 'Result')).toMatchObject([{ stop_reason: 'completed', final_text: 'Both are told.' }])
  })

  test('a call that a client executes waits on, at any level, and its answer counts', async () => {
    planner.plan = {
      'three parts': [
        { calls: [task('the middle part', { subagent_type: 'boss' }), task('the asking part')] },
        { text: 'All is told.' },
      ],
      'the middle part': [{ calls: [task('the client part'), task('the asking part')] }, { text: 'Middle.' }],
      'the client part': [bash('echo began >> began'), WAITS.client_tool, { text: 'It waited.' }],
      'the asking part': [WAITS.permission, { text: 'It asked.' }],
    }
    const place = await begin('three parts', 'client_tool')
    const { id, request } = place
    await untilStatus(id, 'waiting_for_confirmation')
    expect(await requestsOf(call, id, 'permission')).toHaveLength(2)
    const rejected = await call('POST', `/conversations/${id}/reject`, {})
    expect(rejected.body).toEqual({ status: 'waiting_for_client', pending: 0 })
    expect(await requestsOf(call, id, 'client_tool')).toEqual([request])
    await finish(place)
    const events = await stage.events(id)
    expectWhole(events)
    expect(ofSubagents(events, 'Result').map(({ stop_reason }) => stop_reason)).toEqual([
      'rejected',
      'rejected',
      'completed',
      'completed',
    ])
    expect(ofMain(events, 'Result')).toMatchObject([{ stop_reason: 'completed', final_text: 'All is told.' }])
  })

  test('an agent whose subagents all ask ends with them', async () => {
    planner.plan = {
      'one part': [{ calls: [task('the middle part', { subagent_type: 'boss' })] }, { text: 'Never said.' }],
      'the middle part': [bash('echo began >> began'), { calls: [task('the asking part'), task('the asking part')] }],
      'the asking part': [WAITS.permission, { text: 'It asked.' }],
    }
    const { id } = await begin('one part', 'permission')
    await untilStatus(id, 'waiting_for_confirmation')
    const rejected = await call('POST', `/conversations/${id}/reject`, {})
    expect(rejected.body).toEqual({ status: 'idle', pending: 0 })
    const events = await stage.events(id)
    expectWhole(events)
    expect(events.filter(({ type }) => type === 'Result').map(({ stop_reason }) => stop_reason)).toEqual([
      'cancelled',
      'cancelled',
      'rejected',
      'rejected',
    ])
  })
})
