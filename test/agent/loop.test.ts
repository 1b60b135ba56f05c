import { appendFile, readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { HABITS } from '../../src/agent/repeats/habits.ts'
import { UpdateConfig } from '../../src/contract/conversation.ts'
import type { Event } from '../../src/contract/events/event.ts'
import { Event as EventSchema } from '../../src/contract/events/event.ts'
import type { TransientEvent } from '../../src/contract/events/transient-event.ts'
import { inOrder } from '../../src/llm/scripted/script.ts'
import {
  MODEL_KEY,
  call,
  endOf,
  eventsOf,
  gate,
  only,
  say,
  setBench,
  tool,
  until,
  userText,
} from '../conversations/fixtures.ts'
import { longEnough } from '../support/long-enough.ts'
import { PATIENCE_S } from '../support/patience.ts'

const echo = tool('Echo', (input) => ({ output: input['text'] ?? 'echo' }))

/** The log without its first event: type and what is telling of it. */
function summary(events: readonly Event[]): string[] {
  return events.slice(1).map((event) => {
    if (event.type === 'StatusUpdate') return `${event.status} (${event.reason})`
    if (event.type === 'Result') return `Result ${event.stop_reason}`
    return event.type
  })
}

describe('a run', () => {
  test('ends with the answer that calls no tool', async () => {
    await using bench = await setBench({ script: [{ text: 'Hello there.' }] })
    const conversation = await bench.converse()
    const result = await say(conversation)
    expect(result).toMatchObject({
      stop_reason: 'completed',
      final_text: 'Hello there.',
      steps: 1,
      session_id: conversation.id,
    })
    const events = await eventsOf(conversation)
    expect(summary(events)).toEqual([
      'UserMessage',
      'running (message)',
      'AssistantMessage',
      'Result completed',
      'idle (completed)',
    ])
    for (const event of events) expect(EventSchema.safeParse(event).error).toBeUndefined()
  })

  test('asks again after each round of calls; answer and calls are one batch, then the results in order', async () => {
    await using bench = await setBench({
      tools: [echo],
      script: [
        { text: 'Both.', calls: [call('Echo', { text: '1' }), call('Echo', { text: '2' })] },
        { calls: [call('Echo', { text: '3' })] },
        { text: 'Done.' },
      ],
    })
    const conversation = await bench.converse()
    expect(await say(conversation)).toMatchObject({ stop_reason: 'completed', final_text: 'Done.', steps: 3 })
    const events = await eventsOf(conversation)
    expect(summary(events).slice(2, -2)).toEqual([
      'AssistantMessage',
      'ToolUse',
      'ToolUse',
      'ToolResult',
      'ToolResult',
      'AssistantMessage',
      'ToolUse',
      'ToolResult',
      'AssistantMessage',
    ])
    expect(only(events, 'ToolResult').map((event) => event.output)).toEqual(['1', '2', '3'])
    const runIds = new Set(events.flatMap((event) => ('run_id' in event && event.run_id ? [event.run_id] : [])))
    expect(runIds.size).toBe(1)
  })

  test('adds up tokens by model, and cost where there are prices', async () => {
    const usage = { prompt_tokens: 100, completion_tokens: 10, prompt_tokens_details: { cached_tokens: 40 } }
    await using bench = await setBench({
      tools: [echo],
      script: [
        { calls: [call('Echo')], usage },
        { text: 'Done.', usage },
      ],
    })
    const llm_config = {
      model: 'scripted',
      base_url: bench.model.baseUrl,
      input_cost_per_token: 0.001,
      output_cost_per_token: 0.01,
    }
    const conversation = await bench.converse({ llm_config })
    const counted = { scripted: { input_tokens: 200, output_tokens: 20, cached_tokens: 80, reasoning_tokens: 0 } }
    const result = await say(conversation)
    expect(result.usage).toEqual(counted)
    expect(result.cost_usd).toBeCloseTo(0.4)
    await conversation.post(userText('again'))
    expect(conversation.view()).toMatchObject({ usage: counted })
  })

  test('a tool that finishes ends it after its turn', async () => {
    const finish = tool('Finish', () => ({ output: 'bye' }), { finishes: true })
    await using bench = await setBench({ tools: [finish, echo], script: [{ calls: [call('Finish'), call('Echo')] }] })
    const conversation = await bench.converse()
    expect(await say(conversation)).toMatchObject({ stop_reason: 'finished' })
    expect(only(await eventsOf(conversation), 'ToolResult')).toHaveLength(2)
    expect(conversation.view()).toMatchObject({ status: 'finished', state: { agent_finished: true } })
  })

  test.each(['length', 'max_tokens'])(
    'an answer truncated at the output limit is an error, not an end (%s)',
    async (finish_reason) => {
      await using bench = await setBench({ script: [{ text: 'The answer is', finish_reason }] })
      const conversation = await bench.converse()
      expect(await say(conversation)).toMatchObject({ stop_reason: 'error', final_text: 'The answer is' })
      const [error] = only(await eventsOf(conversation), 'ErrorEvent')
      expect(error).toMatchObject({ error_type: 'config', message: expect.stringContaining('max_output_tokens') })
      expect(conversation.state.status).toBe('error')
    },
  )

  test.each(['content_filter', 'SAFETY', 'refusal'])(
    'an answer that a content filter ended says so (%s)',
    async (finish_reason) => {
      await using bench = await setBench({ script: [{ text: 'The recipe is', finish_reason }] })
      const conversation = await bench.converse()
      expect(await say(conversation)).toMatchObject({ stop_reason: 'content_filter', final_text: 'The recipe is' })
      const [error] = only(await eventsOf(conversation), 'ErrorEvent')
      expect(error).toMatchObject({ error_type: 'content_filter', retryable: false })
      expect(conversation.state.status).toBe('error')
    },
  )

  test('an answer of white space only is stored as an empty one, and not sent again', async () => {
    await using bench = await setBench({ script: inOrder([{ text: '\n \n' }, { text: 'Hello.' }]) })
    const conversation = await bench.converse()
    expect(await say(conversation)).toMatchObject({ stop_reason: 'completed', final_text: '' })
    expect(await say(conversation)).toMatchObject({ final_text: 'Hello.' })
    expect(only(await eventsOf(conversation), 'AssistantMessage')[0]).toMatchObject({ text: '', content: [] })
    expect(bench.model.requests.at(-1)!.body.messages.map(({ role }) => role)).toEqual(['system', 'user', 'user'])
  })

  test('without a user message continues after the agent’s last message', async () => {
    await using bench = await setBench({ script: inOrder([{ text: 'One.' }, { text: 'Two.' }, { text: 'Three.' }]) })
    const conversation = await bench.converse()
    await say(conversation)
    for (let round = 0; round < 2; round++) await endOf(conversation, await conversation.run())
    const [, second, third] = bench.model.requests.map(({ text }) => text)
    expect(bench.model.requests[1]!.body.messages.slice(2)).toEqual([
      { role: 'assistant', content: 'One.' },
      { role: 'user', content: 'Continue.' },
    ])
    expect(third!.startsWith(second!.slice(0, -2)), 'byte for byte').toBe(true)
  })

  test('executes the complete calls of an answer that was truncated in the middle of its calls', async () => {
    await using bench = await setBench({
      tools: [echo],
      script: [
        { calls: [call('Echo', { text: '1' }), call('Echo', '{"text": ')], finish_reason: 'length' },
        { text: 'Done.' },
      ],
    })
    const conversation = await bench.converse()
    expect(await say(conversation)).toMatchObject({ stop_reason: 'completed' })
    expect(only(await eventsOf(conversation), 'ToolUse')).toHaveLength(1)
  })
})

test('an answer that the provider paused continues with the next request, if it said something', async () => {
  const paused = { text: 'I am still', finish_reason: 'pause_turn' }
  await using bench = await setBench({ script: [paused, { text: 'searching.' }] })
  expect(await say(await bench.converse())).toMatchObject({
    stop_reason: 'completed',
    steps: 2,
    final_text: 'searching.',
  })
  await using silent = await setBench({ script: [{ finish_reason: 'pause_turn' }] })
  expect(await say(await silent.converse())).toMatchObject({ stop_reason: 'completed', steps: 1 })
})

test('an answer that the provider pauses again and again ends the run as stuck', async () => {
  await using bench = await setBench({ script: () => ({ text: 'I am still', finish_reason: 'pause_turn' }) })
  const conversation = await bench.converse()
  expect(await say(conversation)).toMatchObject({ stop_reason: 'stuck', steps: HABITS.texts.stuckAt })
  expect(only(await eventsOf(conversation), 'ErrorEvent').at(-1)?.message).toContain('without calling a tool')
})

test('the tool_choice of a run holds for its first answer, and that of the configuration for the others', async () => {
  await using bench = await setBench({ tools: [echo], script: inOrder([{ calls: [call('Echo')] }, { text: 'Done.' }]) })
  const conversation = await bench.converse()
  await endOf(conversation, await conversation.run({ tool_choice: 'required' }))
  expect(bench.model.requests.map(({ body }) => body['tool_choice'])).toEqual(['required', undefined])
})

describe('limits', () => {
  const endless = () => ({ calls: [call('Echo')] })

  test('max_steps pauses after that many answers, when their calls are done', async () => {
    await using bench = await setBench({ tools: [echo], script: endless })
    const conversation = await bench.converse()
    const result = await endOf(conversation, await conversation.run({ max_steps: 2 }))
    expect(result).toMatchObject({ stop_reason: 'max_steps', steps: 2 })
    expect(conversation.state).toMatchObject({ status: 'paused', openCalls: [] })
  })

  test('max_iteration_per_run is an error that says what to raise; the next run counts from zero', async () => {
    await using bench = await setBench({ tools: [echo], script: endless })
    const conversation = await bench.converse({ max_iteration_per_run: 3 })
    expect(await say(conversation)).toMatchObject({ stop_reason: 'iteration_limit', steps: 3 })
    expect(only(await eventsOf(conversation), 'ErrorEvent')[0]?.message).toContain('max_iteration_per_run')
    expect(await say(conversation)).toMatchObject({ stop_reason: 'iteration_limit', steps: 3 })
  })

  test('max_seconds_per_run ends a model call', async () => {
    await using bench = await setBench({ script: [{ text: 'Too late.', delay_ms: 10_000 }] })
    const conversation = await bench.converse({ max_seconds_per_run: 0.2 })
    expect(await say(conversation)).toMatchObject({ stop_reason: 'time_limit' })
    expect(conversation.state.status).toBe('error')
  })

  test('max_seconds_per_run ends a tool, which still gets its result', async () => {
    const slow = gate('Slow')
    const script = () => ({ calls: [call('Slow')] })
    await using bench = await setBench({ tools: [slow.tool], script })
    const conversation = await longEnough(0.2, async (max_seconds_per_run) => {
      const begun = await bench.converse({ max_seconds_per_run })
      expect(await say(begun)).toMatchObject({ stop_reason: 'time_limit' })
      return (await eventsOf(begun)).some(({ type }) => type === 'ToolUse') && begun
    })
    expect(await until(conversation, 'ToolResult')).toMatchObject({ is_error: true, error_type: 'interrupted' })
  })

  test('a limit of a month is a month: timers alone reach 25 days', async () => {
    await using bench = await setBench({ script: [{ text: 'Done.', delay_ms: 50 }] })
    const conversation = await bench.converse({ max_seconds_per_run: 2_592_000 })
    expect(await say(conversation)).toMatchObject({ stop_reason: 'completed' })
  })
})

describe('a configuration changed in mid-run', () => {
  test('holds from the next step on, credentials and limits alike', async () => {
    const slow = gate('Slow')
    await using bench = await setBench({
      tools: [slow.tool],
      script: [{ calls: [call('Slow')] }, { calls: [call('Slow')] }, { calls: [call('Slow')] }],
    })
    const conversation = await bench.converse()
    const { run_id } = await conversation.post(userText('go', true))
    await slow.entered
    const update = UpdateConfig.parse({
      llm_config: { model: 'other', api_key: 'another-key-0815', temperature: 0.5 },
      max_iteration_per_run: 2,
    })
    await bench.configure(conversation.id, update)
    slow.open()
    expect(await endOf(conversation, run_id!)).toMatchObject({ stop_reason: 'iteration_limit', steps: 2 })
    expect(
      bench.model.requests.map(({ body, headers }) => [body['model'], body['temperature'], headers.authorization]),
    ).toEqual([
      ['scripted', undefined, `Bearer ${MODEL_KEY}`],
      ['other', 0.5, 'Bearer another-key-0815'],
    ])
    expect(only(await eventsOf(conversation), 'ConfigUpdate')).toMatchObject([
      {
        changes: { llm_config: { model: 'other', api_key: '**********', temperature: 0.5 }, max_iteration_per_run: 2 },
      },
    ])
  })

  test('a time limit set in mid-run ends the run', async () => {
    const slow = gate('Slow')
    await using bench = await setBench({
      tools: [slow.tool],
      script: [{ calls: [call('Slow')] }, { text: 'Too late.', delay_ms: 10_000 }],
    })
    const conversation = await bench.converse()
    const { run_id } = await conversation.post(userText('go', true))
    await slow.entered
    await bench.configure(conversation.id, { max_seconds_per_run: 0.3 })
    slow.open()
    expect(await endOf(conversation, run_id!)).toMatchObject({ stop_reason: 'time_limit' })
  })
})

describe('an error of the provider', () => {
  test.each([
    [401, { message: 'bad key' }, 'auth'],
    [429, { message: 'insufficient_quota', code: 'insufficient_quota' }, 'quota'],
    [429, { message: 'slow down' }, 'rate_limit'],
    [400, { message: 'context_length_exceeded', code: 'context_length_exceeded' }, 'context_window'],
    [404, { message: 'no such model' }, 'config'],
    [503, { message: 'down for maintenance' }, 'network'],
  ])('%i %j ends the run as %s', async (status, error, type) => {
    await using bench = await setBench({ script: () => ({ status, error }) })
    const conversation = await bench.converse()
    expect(await say(conversation)).toMatchObject({ stop_reason: 'error', steps: 0 })
    const [summary, ...more] = only(await eventsOf(conversation), 'ErrorEvent')
    expect(more).toEqual([])
    expect(summary?.error_type).toBe(type)
    expect(conversation.state.status).toBe('error')
  })

  test('a message whose run failed immediately does not start another run', async () => {
    await using bench = await setBench({ script: () => ({ status: 401, error: { message: 'bad key' } }) })
    const conversation = await bench.converse({
      llm_config: { model: 'scripted', base_url: 'http://127.0.0.1:1/v1', num_retries: 0 },
    })
    await say(conversation)
    expect(only(await eventsOf(conversation), 'Result')).toHaveLength(1)
  })

  test('the text before the stream broke is kept, marked as partial', async () => {
    await using bench = await setBench({ script: inOrder([{ text: 'So far so', cut_after: 3 }, { text: 'Good.' }]) })
    const conversation = await bench.converse()
    expect(await say(conversation)).toMatchObject({ stop_reason: 'error' })
    expect(only(await eventsOf(conversation), 'AssistantMessage')).toMatchObject([{ partial: true, tool_use_ids: [] }])
    expect(await say(conversation)).toMatchObject({ stop_reason: 'completed', final_text: 'Good.' })
  })

  test('an answer says through which API it came, and when its first piece and its end came, without earlier attempts', async () => {
    await using bench = await setBench({
      script: inOrder([
        { status: 503, error: { message: 'busy' } },
        { text: 'So it is.', delay_ms: 60, chunk_delay_ms: 10 },
        { text: '', calls: [] },
      ]),
    })
    const llm_config = { model: 'scripted', base_url: bench.model.baseUrl, api_key: MODEL_KEY, num_retries: 1 }
    const conversation = await bench.converse({ llm_config })
    await say(conversation)
    const [answer] = only(await eventsOf(conversation), 'AssistantMessage')
    const { first_delta_ms = 0, duration_ms = 0 } = answer!
    expect(answer).toMatchObject({ provider: 'openai', text: 'So it is.' })
    expect(first_delta_ms).toBeGreaterThanOrEqual(50)
    expect(duration_ms).toBeGreaterThan(first_delta_ms)
    await say(conversation)
    expect(only(await eventsOf(conversation), 'AssistantMessage').at(-1)).not.toHaveProperty('first_delta_ms')
  })

  test('a retried request is reported with reason and wait, and the deltas of the attempt are withdrawn', async () => {
    await using bench = await setBench({
      script: inOrder([
        { status: 503, error: { message: `busy with ${MODEL_KEY}` } },
        { text: 'So far so', cut_after: 3, chunk_delay_ms: 5 },
        { text: 'Good.' },
      ]),
    })
    const llm_config = { model: 'scripted', base_url: bench.model.baseUrl, api_key: MODEL_KEY, num_retries: 3 }
    const conversation = await bench.converse({ llm_config })
    const shown: TransientEvent[] = []
    conversation.log.subscribe({ onTransient: ({ event }) => shown.push(event) })
    expect(await say(conversation)).toMatchObject({ stop_reason: 'completed', final_text: 'Good.', steps: 1 })
    const events = await eventsOf(conversation)
    const retries = only(events, 'ModelRetry')
    expect(retries).toMatchObject([
      { retry: 1, max_retries: 3, error_type: 'network', message: expect.stringContaining('HTTP 503') },
      { retry: 2, max_retries: 3, error_type: 'network', message: expect.stringContaining('The connection to') },
    ])
    for (const retry of retries) expect(EventSchema.safeParse(retry).error).toBeUndefined()
    expect(JSON.stringify(retries)).not.toContain(MODEL_KEY)
    const aborted = shown.flatMap((event) => (event.type === 'AssistantAborted' ? [event.message_id] : []))
    expect(aborted, 'only the attempt that had shown something').toEqual([retries[1]!.message_id])
    expect(only(events, 'AssistantMessage').map(({ text }) => text)).toEqual(['Good.'])
    expect(only(events, 'ErrorEvent')).toEqual([])
  })

  test('the learnt dialect of an endpoint is kept for the conversation', async () => {
    await using bench = await setBench({
      script: ({ body }) =>
        'stream_options' in body ? { status: 400, error: { message: 'stream_options: unknown' } } : { text: 'Hello.' },
    })
    const conversation = await bench.converse()
    for (let round = 0; round < 3; round++) expect(await say(conversation)).toMatchObject({ stop_reason: 'completed' })
    expect(bench.model.requests.map(({ body }) => 'stream_options' in body)).toEqual([true, false, false, false])
  })

  test('a model without tools is reported once, and called without them from then on', async () => {
    await using bench = await setBench({
      tools: [echo],
      script: ({ body }) =>
        body['tools']
          ? { status: 400, error: { message: 'scripted does not support tools' } }
          : { text: 'Just words.' },
    })
    const conversation = await bench.converse()
    expect(await say(conversation)).toMatchObject({ stop_reason: 'completed', final_text: 'Just words.' })
    expect(await say(conversation)).toMatchObject({ stop_reason: 'completed' })
    expect(only(await eventsOf(conversation), 'ErrorEvent')).toMatchObject([
      { error_type: 'config', retryable: false, message: expect.stringContaining('does not support tools') },
    ])
    expect(bench.model.requests.map(({ body }) => body['tools'] !== undefined)).toEqual([true, false, false])
  })
})

describe('messages during a run', () => {
  test('are read at the next step', async () => {
    const slow = gate('Slow')
    await using bench = await setBench({ tools: [slow.tool], script: [{ calls: [call('Slow')] }, { text: 'Done.' }] })
    const conversation = await bench.converse()
    const { run_id } = await conversation.post(userText('go', true))
    await slow.entered
    const posted = await conversation.post(userText('and this'))
    expect(posted).not.toHaveProperty('run_id')
    expect(await conversation.post(userText('and that', true))).toMatchObject({ run_id })
    slow.open()
    expect(await endOf(conversation, run_id!)).toMatchObject({ steps: 2 })
    const { messages } = bench.model.requests.at(-1)!.body
    expect(messages.map((message) => message.role)).toEqual(['system', 'user', 'assistant', 'tool', 'user', 'user'])
  })

  test('that asked for a run are always answered, however late they arrive', async () => {
    const answers = inOrder(Array.from({ length: 40 }, (_, at) => ({ text: `Answer ${at}.`, chunk_delay_ms: 1 })))
    await using bench = await setBench({ script: answers })
    const conversation = await bench.converse()
    for (let round = 0; round < 10; round++) {
      await conversation.post(userText(`first ${round}`, true))
      // As late as a message can come: the last answer is stored, the run's end is not.
      await until(conversation, 'AssistantMessage', (event) => event.seq === conversation.log.head)
      await conversation.post(userText(`second ${round}`, true))
      await until(conversation, 'Result', (event) => event.seq > conversation.state.runRequestedAt)
      await until(
        conversation,
        'StatusUpdate',
        (event) => event.status === 'idle' && event.seq > conversation.state.runRequestedAt,
      )
      expect(bench.model.requests.at(-1)!.text).toContain(`second ${round}`)
    }
    const events = await eventsOf(conversation)
    expect(only(events, 'Result').map((event) => event.run_id)).toEqual([
      ...new Set(only(events, 'Result').map((event) => event.run_id)),
    ])
  })
})

describe('pause', () => {
  test('ends the model call immediately; nothing of the incomplete answer is stored', async () => {
    await using bench = await setBench({
      script: inOrder([{ text: 'one two three four '.repeat(100), chunk_delay_ms: 300 }, { text: 'Again.' }]),
    })
    const conversation = await bench.converse()
    const shown = Promise.withResolvers<void>()
    conversation.log.subscribe({
      onTransient: ({ event }) => event.type === 'AssistantDelta' && shown.resolve(),
    })
    await conversation.post(userText('go', true))
    await shown.promise
    expect(await conversation.pause({ interrupt: false })).toBe('paused')
    expect(summary(await eventsOf(conversation))).toEqual([
      'UserMessage',
      'running (message)',
      'Result paused',
      'paused (pause)',
    ])
    expect(await endOf(conversation, await conversation.run())).toMatchObject({ final_text: 'Again.' })
  })

  test('lets a running tool finish; a later run awaits that same call', async () => {
    const slow = gate('Slow')
    await using bench = await setBench({
      tools: [slow.tool],
      script: [{ calls: [call('Slow'), call('Slow')] }, { text: 'Done.' }],
    })
    const conversation = await bench.converse()
    await conversation.post(userText('go', true))
    await slow.entered
    expect(await conversation.pause({ interrupt: false })).toBe('paused')
    const run = await conversation.run()
    slow.open()
    expect(await endOf(conversation, run)).toMatchObject({ stop_reason: 'completed', steps: 1 })
    expect(slow.calls()).toBe(2)
    const results = only(await eventsOf(conversation), 'ToolResult')
    expect(results.map((event) => event.tool_use_id)).toEqual(
      only(await eventsOf(conversation), 'ToolUse').map((event) => event.tool_use_id),
    )
  })

  test('with interrupt it ends the tool, whose result says so; the calls after it never run', async () => {
    const slow = gate('Slow')
    await using bench = await setBench({
      tools: [slow.tool],
      script: [{ calls: [call('Slow'), call('Slow')] }, { text: 'Done.' }],
    })
    const conversation = await bench.converse()
    await conversation.post(userText('go', true))
    await slow.entered
    await conversation.pause({ interrupt: true })
    expect(only(await eventsOf(conversation), 'ToolResult')).toMatchObject([
      { error_type: 'interrupted' },
      { error_type: 'interrupted', output: expect.stringContaining('did not run') },
    ])
    slow.open()
    expect(await endOf(conversation, await conversation.run())).toMatchObject({ stop_reason: 'completed' })
    expect(slow.calls()).toBe(1)
  })

  test('responds before a tool that ignores its signal has ended', async () => {
    const deaf = gate('Deaf', { stubborn: true })
    await using bench = await setBench({ tools: [deaf.tool], script: [{ calls: [call('Deaf')] }, { text: 'Done.' }] })
    const conversation = await bench.converse()
    await conversation.post(userText('go', true))
    await deaf.entered
    expect(await conversation.pause({ interrupt: true })).toBe('paused')
    expect(only(await eventsOf(conversation), 'ToolResult')).toEqual([])
    deaf.open()
    expect(await until(conversation, 'ToolResult')).toMatchObject({ output: 'through' })
  })

  test('of a conversation without a run changes nothing', async () => {
    await using bench = await setBench()
    const conversation = await bench.converse()
    expect(await conversation.pause({ interrupt: true })).toBe('idle')
    expect(conversation.state.lastSeq).toBe(1)
  })

  test('right after a start stops the run before it begins', async () => {
    await using bench = await setBench({ script: [{ text: 'Never said.', delay_ms: 10_000 }] })
    const conversation = await bench.converse()
    for (let round = 0; round < 5; round++) {
      const [, status] = await Promise.all([conversation.run(), conversation.pause({ interrupt: false })])
      expect(status).toBe('paused')
    }
    const events = await eventsOf(conversation)
    expect(only(events, 'Result')).toHaveLength(5)
    expect(only(events, 'AssistantMessage')).toEqual([])
  })
})

test('waiting for a run ends when the run does, at the timeout, and when the client disconnects', async () => {
  const slow = gate('Slow')
  await using bench = await setBench({ tools: [slow.tool], script: [{ calls: [call('Slow')] }, { text: 'Done.' }] })
  const conversation = await bench.converse()
  const run = await conversation.run()
  await slow.entered
  const before = conversation.log.subscriberCount
  expect(await conversation.waitForRun(run, 0.0015, new AbortController().signal)).toEqual({
    run_id: run,
    status: 'running',
  })
  expect(await conversation.waitForRun(run, 600, AbortSignal.abort())).toEqual({ run_id: run, status: 'running' })
  const waiting = conversation.waitForRun(run, 600, new AbortController().signal)
  slow.open()
  expect(await waiting).toMatchObject({ run_id: run, status: 'idle', result: { stop_reason: 'completed' } })
  expect(await conversation.waitForRun(run, 600, new AbortController().signal)).toMatchObject({
    status: 'idle',
    result: { run_id: run },
  })
  expect(conversation.log.subscriberCount, 'nobody listens any more').toBe(before)
})

describe('a log that fails under a run', () => {
  test('a history that cannot be read ends the run with an error, and leaves it startable', async () => {
    await using bench = await setBench()
    const id = await bench.create()
    await say(await bench.manager.open(id))
    await bench.restart({
      between: async () => {
        const path = join(bench.sessionOf(id), 'events.jsonl')
        const lines = (await readFile(path, 'utf8')).split('\n')
        lines[1] = `${lines[1]!.slice(0, 40)}${'x'.repeat(lines[1]!.length - 40)}`
        await writeFile(path, lines.join('\n'))
      },
    })
    const conversation = await bench.manager.open(id)
    const run = await conversation.run()
    const wait = () => conversation.waitForRun(run, PATIENCE_S, new AbortController().signal)
    const failed = { status: 'error', error: { type: 'internal', message: expect.stringContaining('damaged') } }
    expect(await wait()).toMatchObject(failed)
    expect(await wait(), 'also after its end').toMatchObject(failed)
    expect(conversation.view()).toMatchObject({ status: 'error', last_seq: 10 })
    const page = await conversation.log.read({ order: 'desc', limit: 4 })
    expect(page.events.map((stored) => stored.type)).toEqual(['StatusUpdate', 'Result', 'ErrorEvent', 'StatusUpdate'])
    expect(page.events[2]?.event).toMatchObject({ error_type: 'internal', message: expect.stringContaining('damaged') })
  })
})

test('the model’s key is only encrypted in the data directory, and not in the server’s log', async () => {
  await using bench = await setBench({
    tools: [echo],
    script: [
      {
        text: `Is it ${MODEL_KEY}?`,
        calls: [call('Echo', { text: `${MODEL_KEY} ${Buffer.from(MODEL_KEY).toString('base64')}` })],
      },
      { text: 'Done.' },
    ],
  })
  const conversation = await bench.converse({
    title: `about ${MODEL_KEY}`,
    metadata: { note: MODEL_KEY },
    microagents: [`use ${MODEL_KEY}`],
    system_prompt: `You know ${MODEL_KEY}.`,
    visualize: true,
  })
  await conversation.post({
    message: { role: 'user', content: `my key is ${MODEL_KEY}`, sender: MODEL_KEY },
    run: true,
  })
  await until(conversation, 'Result')
  await bench.configure(conversation.id, UpdateConfig.parse({ title: `still ${MODEL_KEY}` }))
  await bench.manager.close()

  const names = await readdir(bench.dataDir, { recursive: true, withFileTypes: true })
  const files = names.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  expect(files.map((path) => path.split('/').at(-1))).toEqual(
    expect.arrayContaining(['events.jsonl', 'meta.json', 'secrets.enc']),
  )
  for (const path of files) {
    // The last meta.json may be replaced just now: then its draft is gone.
    const content = await readFile(path, 'latin1').catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
      return ''
    })
    expect(content, path).not.toContain(MODEL_KEY)
    expect(content, path).not.toContain(Buffer.from(MODEL_KEY).toString('base64').slice(0, 20))
  }
  expect(bench.logged.join('')).not.toContain(MODEL_KEY)
  expect(bench.model.requests.at(-1)!.text, 'nor in what the model reads').not.toContain(MODEL_KEY)
})

test('a log that a newer server wrote can be read, and is not run', async () => {
  await using bench = await setBench()
  const id = await bench.create()
  await bench.restart({
    between: async () => {
      const envelope = {
        id: '018f0000-0000-7000-8000-00000000000d',
        timestamp: new Date().toISOString(),
        source: 'agent',
        version: 99,
        conversation_id: id,
      }
      await appendFile(
        join(bench.sessionOf(id), 'events.jsonl'),
        `${JSON.stringify({ seq: 2, type: 'Telepathy', ...envelope })}\n`,
      )
    },
  })
  const conversation = await bench.manager.open(id)
  expect((await eventsOf(conversation)).map((event) => event.type)).toEqual(['SystemInit', 'Telepathy'])
  await expect(conversation.run()).rejects.toMatchObject({ code: 'conversation_from_newer_version' })
  await expect(conversation.post(userText('hi'))).rejects.toMatchObject({ code: 'conversation_from_newer_version' })
})
