/** The model is asked while the result that it is asked about is still being written; nothing comes of it before that is done. */
import { expect, test } from 'vitest'
import type { EventStore, StoredLog } from '../../src/events/event-store.ts'
import type { UpdateConfig } from '../../src/contract/conversation.ts'
import { Problem } from '../../src/contract/problem.ts'
import type { Script, ScriptedTurn } from '../../src/llm/scripted/script.ts'
import { inOrder } from '../../src/llm/scripted/script.ts'
import { createJsonlStore } from '../../src/storage/files/log/jsonl-store.ts'
import { call, endOf, eventsOf, gate, only, say, setBench, tool, userText, until } from '../conversations/fixtures.ts'
import type { BenchLogs, BenchOptions } from '../conversations/fixtures.ts'
import { expectSentAsStored, numbered } from '../support/sent-requests.ts'
import { approvalsOf } from '../support/answering.ts'

const echo = tool('Echo', () => ({ output: 'echo' }))
const fail = tool('Fail', () => ({ output: 'no', error: { type: 'failed', message: 'It failed.' } }))
// As a command that has an exit code.
const exit = tool('False', () => ({ output: { exit_code: 1 } }))
const finish = tool('Finish', () => ({ output: 'bye' }), { finishes: true })

/** Real files, on a disk that takes the results of tools, and what is appended after one or after that text, only when it is let. */
async function setHeldBench(options: BenchOptions, heldText = 'no such text') {
  const home = { directory: '' }
  // The directory is known when there is a bench.
  let store: EventStore | undefined
  const real = () => (store ??= createJsonlStore(home))
  const hold = { reached: Promise.withResolvers<void>(), over: Promise.withResolvers<void>(), isFull: false }
  const held = (log: StoredLog): StoredLog => {
    const append = log.append.bind(log)
    let before: Promise<unknown> = Promise.resolve()
    log.append = (drafts, ...rest) => {
      const waits = drafts.some(({ type }) => type === 'ToolResult') || JSON.stringify(drafts).includes(heldText)
      if (waits) hold.reached.resolve()
      const turn = waits ? Promise.all([before, hold.over.promise]) : before
      before = turn
      return turn.then(() => {
        if (waits && hold.isFull) throw new Problem('storage_full', 'There is no room.')
        return append(drafts, ...rest)
      })
    }
    return log
  }
  const logs: BenchLogs = {
    home,
    create: async (...args) => held(await real().create(...args)),
    copy: async (...args) => held(await real().copy(...args)),
    open: async (...args) => {
      const opened = await real().open(...args)
      return { ...opened, log: held(opened.log) }
    },
    delete: (id) => real().delete(id),
  }
  const bench = await setBench({ tools: [echo, fail, exit, finish], ...options, logs })
  return { bench, hold }
}

const SCRIPT = [{ calls: [call('Echo')] }, { text: 'Done.' }]
const roles = ({ messages }: { messages: readonly { role: string }[] }) => messages.map(({ role }) => role)

test('the next request is sent before the result is stored; its answer is shown and stored after it', async () => {
  const { bench, hold } = await setHeldBench({ script: SCRIPT })
  await using _ = bench
  const conversation = await bench.converse()
  const seen: string[] = []
  conversation.log.subscribe({
    onEvents: (events) => seen.push(...events.map(({ type }) => type)),
    onTransient: ({ event }) => seen.push(event.type),
  })
  const { run_id } = await conversation.post(userText('go', true))
  await hold.reached.promise
  await expect.poll(() => bench.model.requests.map(roles)).toHaveLength(2)
  expect(roles(bench.model.requests[1]!).slice(-2)).toEqual(['assistant', 'tool'])
  expect(seen).not.toContain('ToolResult')
  const before = seen.length

  hold.over.resolve()
  expect(await endOf(conversation, run_id!)).toMatchObject({ stop_reason: 'completed', final_text: 'Done.' })
  expect(seen[before]).toBe('ToolResult')
  expect(seen.indexOf('AssistantDelta', before)).toBeGreaterThan(before)
  expect(bench.model.requests).toHaveLength(2)
  const answer = only(await eventsOf(conversation), 'AssistantMessage').at(-1)
  const result = only(await eventsOf(conversation), 'ToolResult').at(-1)
  expect(answer?.read_through).toBe(result?.seq)
})

test('a result that cannot be stored ends the request with the run; the next run asks again, and repeats no call', async () => {
  const { bench, hold } = await setHeldBench({
    script: ({ messages, attempt }) =>
      messages.some(({ role }) => role === 'tool') ? { text: 'Done.', delay_ms: attempt ? 0 : 60_000 } : SCRIPT[0]!,
  })
  await using _ = bench
  const conversation = await bench.converse()
  await conversation.post(userText('go', true))
  await expect.poll(() => bench.model.requests).toHaveLength(2)
  hold.isFull = true
  hold.over.resolve()
  await expect.poll(() => conversation.view().status).toBe('error')
  await expect.poll(() => bench.model.requests[1]!.closedEarly).toBe(true)
  expect(only(await eventsOf(conversation), 'AssistantMessage')).toHaveLength(1)

  hold.isFull = false
  const end = await endOf(conversation, await conversation.run())
  expect(end).toMatchObject({ stop_reason: 'completed', final_text: 'Done.' })
  expect(bench.model.requests.at(-1)!.text).toBe(bench.model.requests[1]!.text)
  expect(only(await eventsOf(conversation), 'ToolResult')).toMatchObject([{ output: 'echo' }])
})

test('a pause ends it', async () => {
  const { bench, hold } = await setHeldBench({ script: [SCRIPT[0]!, { text: 'Done.', delay_ms: 60_000 }] })
  await using _ = bench
  const conversation = await bench.converse()
  await conversation.post(userText('go', true))
  await expect.poll(() => bench.model.requests).toHaveLength(2)
  const paused = conversation.pause({ interrupt: false })
  await expect.poll(() => bench.model.requests[1]!.closedEarly).toBe(true)
  hold.over.resolve()
  await paused
  expect(conversation.view().status).toBe('paused')
  expect(only(await eventsOf(conversation), 'ToolResult')).toHaveLength(1)
})

test('a message that is stored meanwhile is in the request that counts', async () => {
  const slow = gate('Slow')
  const script = [{ calls: [call('Slow')] }, { text: 'Done.' }]
  const { bench, hold } = await setHeldBench({ tools: [slow.tool], script }, 'One more thing.')
  await using _ = bench
  const conversation = await bench.converse()
  const { run_id } = await conversation.post(userText('go', true))
  await slow.entered
  const posted = conversation.post(userText('One more thing.'))
  await hold.reached.promise
  slow.open()
  await expect.poll(() => bench.model.requests).toHaveLength(2)
  hold.over.resolve()
  await posted
  await endOf(conversation, run_id!)
  expect(bench.model.requests.map((request) => roles(request).at(-1))).toEqual(['user', 'tool', 'user'])
  const events = await eventsOf(conversation)
  expect(only(events, 'AssistantMessage')).toHaveLength(2)
  expect(only(events, 'AssistantMessage').at(-1)!.read_through).toBe(only(events, 'ToolResult').at(-1)!.seq)
})

const stop = { hooks: { Stop: [{ hooks: [{ type: 'http' as const, url: 'http://127.0.0.1:9/' }] }] } }

test.each<[string, UpdateConfig, string[]]>([
  ['hooks that the request has to pass', stop, ['user', 'tool', 'tool']],
  ['another model', { llm_config: { model: 'other' } }, ['user', 'tool', 'tool']],
  [
    'another tool',
    { client_tools: [{ name: 'Ask', description: 'x', input_schema: { type: 'object' } }] },
    ['user', 'tool', 'tool'],
  ],
  ['a limit that the run has reached', { max_iteration_per_run: 1 }, ['user', 'tool']],
  ['a window that is too small', { llm_config: { context_window: 1000 } }, ['user', 'tool', 'user']],
])('is aborted as soon as something else follows: %s', async (_, update, asked) => {
  const slow = gate('Slow')
  const script = inOrder([{ calls: [call('Slow')] }, ...Array.from({ length: 2 }, () => ({ delay_ms: 60_000 }))])
  const { bench, hold } = await setHeldBench({ tools: [slow.tool], script }, '"ConfigUpdate"')
  await using __ = bench
  const conversation = await bench.converse()
  await conversation.post(userText('go '.repeat(4000), true))
  await slow.entered
  const configured = conversation.configure(update)
  await hold.reached.promise
  slow.open()
  await expect.poll(() => bench.model.requests).toHaveLength(2)
  hold.over.resolve()
  await configured
  await expect.poll(() => bench.model.requests[1]!.closedEarly).toBe(true)
  await expect.poll(() => bench.model.requests.map((request) => roles(request).at(-1))).toEqual(asked)
  await conversation.pause({ interrupt: true })
  expect(only(await eventsOf(conversation), 'AssistantMessage')).toHaveLength(1)
})

test('credentials that cannot be read any more end the run with an error that says so, after the result', async () => {
  await using bench = await setBench({ script: SCRIPT, tools: [echo] })
  const id = await bench.create({ confirmation_mode: true })
  const { run_id } = await (await bench.manager.open(id)).post(userText('go', true))
  await until(await bench.manager.open(id), 'RequestOpened')
  await bench.restart({ secretKeys: ['another-key-material'] })
  const conversation = await bench.manager.open(id)
  await approvalsOf(conversation).approve(approvalsOf(conversation).pending().items[0]!.request_id)
  expect(await endOf(conversation, run_id!)).toMatchObject({ stop_reason: 'error' })
  const events = await eventsOf(conversation)
  expect(only(events, 'ToolResult')).toMatchObject([{ output: 'echo' }])
  expect(only(events, 'ErrorEvent')).toMatchObject([{ error_type: 'auth' }])
})

test('a retry whose event cannot be stored ends the request', async () => {
  const { bench, hold } = await setHeldBench({ script: () => ({ status: 500 }) }, '"ModelRetry"')
  await using _ = bench
  hold.isFull = true
  hold.over.resolve()
  const llm_config = { model: 'scripted', base_url: bench.model.baseUrl, api_key: 'any', num_retries: 1 }
  const conversation = await bench.converse({ llm_config })
  await conversation.post(userText('go', true))
  await expect.poll(() => conversation.view().status).toBe('error')
  const answers = bench.metrics.instruments.find(({ name }) => name === 'agent_server_llm_answer_seconds')!
  expect(answers.samples()).toContainEqual(
    expect.objectContaining({ labels: { model: 'scripted', outcome: 'aborted' }, suffix: '_count', value: 1 }),
  )
})

test.each<[string, object, Script]>([
  ['the limit of the run is reached', { max_iteration_per_run: 1 }, SCRIPT],
  ['the failing call was one too many', {}, Array.from({ length: 6 }, () => ({ calls: [call('False')] }))],
  ['the call was one repetition too many', {}, Array.from({ length: 6 }, () => ({ calls: [call('Fail')] }))],
  ['the run is to end with a call', {}, [{ calls: [call('Echo'), call('Finish')] }]],
  ['another call follows', {}, [{ calls: [call('Echo'), call('Echo')] }, { text: 'Done.' }]],
])('nothing is asked ahead when %s', async (_, settings, script) => {
  const { bench, hold } = await setHeldBench({ script })
  await using __ = bench
  const conversation = await bench.converse(settings)
  const { run_id } = await conversation.post(userText('go', true))
  await hold.reached.promise
  hold.over.resolve()
  await until(conversation, 'Result')
  await endOf(conversation, run_id!)
  const asked = bench.model.requests.map(({ text }) => text)
  expect(new Set(asked).size).toBe(asked.length)
  expect(bench.model.requests.every(({ closedEarly }) => !closedEarly)).toBe(true)
  expect(asked).toHaveLength(only(await eventsOf(conversation), 'AssistantMessage').length)
})

const picture = [{ type: 'image', media_type: 'image/png', data: 'iVBORw0=' }]
const look = tool('Look', () => ({ output: picture }), { readOnly: true })

test.each(['openai', 'openai_responses', 'anthropic'] as const)(
  'each request is answered once (%s)',
  async (provider) => {
    const steps: ScriptedTurn[] = [
      { reasoning: 'Hm.', text: 'I look.', calls: [call('Look'), call('Look'), call('Echo')] },
      { calls: [call('Fail')] },
      { calls: [call('Look')], reasoning: 'Hm.' },
      { calls: [call('Nothing'), call('Echo')] },
      { calls: [call('Echo', '{ no JSON')] },
    ]
    const { script, asked } = numbered([...steps, { text: 'Once.' }, ...steps, { text: 'Twice.' }])
    await using bench = await setBench({ script, tools: [echo, look, fail] })
    const llm_config = { model: 'scripted', base_url: bench.model.baseUrl, api_key: 'any', num_retries: 0, provider }
    const conversation = await bench.converse({ llm_config })
    expect(await say(conversation)).toMatchObject({ final_text: 'Once.' })
    expect(await say(conversation)).toMatchObject({ final_text: 'Twice.' })
    const events = await eventsOf(conversation)
    expect(only(events, 'AssistantMessage').map(({ usage }) => usage.input_tokens)).toEqual(
      asked.map((_, at) => at + 1),
    )
    expectSentAsStored(events, asked, { config: llm_config })
  },
)
