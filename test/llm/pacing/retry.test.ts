import { setImmediate as yieldToLoop } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { HttpLlm } from '../../../src/llm/http-llm.ts'
import { retryWaitMs } from '../../../src/llm/pacing/retry.ts'
import { inOrder } from '../../../src/llm/scripted/script.ts'
import type { ScriptedTurn } from '../../../src/llm/scripted/script.ts'
import { startScriptedModel } from '../../../src/llm/scripted/scripted-model.ts'
import { ask, askScript, chatWith, delta, event, QUESTION, shownText } from '../asking.ts'
import { longEnough } from '../../support/long-enough.ts'
import { PATIENCE_MS } from '../../support/patience.ts'

const done: ScriptedTurn = { text: 'done' }
/** Many words: none of the waits is as long as a limit of the tests, and all of them are longer. */
const ENDLESS: ScriptedTurn = { text: 'a '.repeat(10_000), chunk_delay_ms: 100 }
const fails = (status: number, headers: Record<string, string> = {}): ScriptedTurn => ({ status, headers })

describe('a request that failed before anything was shown', () => {
  test.each([408, 409, 429, 500, 502, 503, 529])('is repeated after HTTP %i', async (status) => {
    const { answer, requests } = await askScript([fails(status), fails(status), done], { num_retries: 2 })
    expect(answer?.text).toBe('done')
    expect(requests).toHaveLength(3)
    expect(new Set(requests.map(({ text }) => text)).size).toBe(1)
  })

  test.each([400, 401, 402, 403, 404, 413, 422])('is not repeated after HTTP %i', async (status) => {
    const { error, requests } = await askScript([fails(status), done], { num_retries: 3 })
    expect(error?.retryable).toBe(false)
    expect(requests).toHaveLength(1)
  })

  test('is repeated when the connection broke', async () => {
    const { answer } = await askScript([{ raw: ['', ''], cut_after: 0 }, done], { num_retries: 1 })
    expect(answer?.text).toBe('done')
  })

  test('is repeated four times unless num_retries says otherwise', async () => {
    await using model = await startScriptedModel(() => fails(503))
    const config = { model: 'm', base_url: model.baseUrl }
    const { error } = await ask(new HttpLlm({ config, retryBaseMs: 1 }))
    expect(error).toMatchObject({ type: 'network', retryable: true })
    expect(model.requests).toHaveLength(5)
    await ask(new HttpLlm({ config: { ...config, num_retries: 0 }, retryBaseMs: 1 }))
    expect(model.requests).toHaveLength(6)
  })

  test('is not repeated when the quota is used up', async () => {
    const turn = { status: 429, error: { code: 'insufficient_quota', message: 'You exceeded your current quota' } }
    const { error, requests } = await askScript([turn, done], { num_retries: 3 })
    expect(error?.type).toBe('quota')
    expect(requests).toHaveLength(1)
  })
})

describe('an answer that broke off', () => {
  const cut = (...deltas: object[]): ScriptedTurn => ({
    raw: [...deltas.map((each) => event(delta(each))), ''],
    cut_after: deltas.length,
    chunk_delay_ms: 5,
  })

  test('after text, reasoning or tool input is repeated, and the shown deltas are withdrawn', async () => {
    const call = { tool_calls: [{ index: 0, id: 'a', function: { name: 'Bash', arguments: '{"x' } }] }
    const broken = cut({ reasoning_content: 'hm' }, { content: 'I will ' }, call)
    const { answer, deltas, requests } = await askScript([broken, done], { num_retries: 1 })
    expect(deltas.slice(0, 4).map(({ kind }) => kind)).toEqual(['reasoning', 'text', 'tool_input', 'retry'])
    expect(shownText(deltas)).toBe('done')
    expect(answer).toMatchObject({ text: 'done', reasoning: '', toolCalls: [] })
    expect(requests).toHaveLength(2)
  })

  test('is repeated as often as any other request, and says each time why and how long it waits', async () => {
    const { error, deltas, requests } = await askScript(() => cut({ content: 'I will ' }, { content: 'now' }), {
      num_retries: 2,
    })
    expect(requests).toHaveLength(3)
    expect(deltas.filter(({ kind }) => kind === 'retry')).toEqual(
      [1, 2].map((retry) => ({
        kind: 'retry',
        type: 'network',
        message: expect.stringContaining('The connection to'),
        retry,
        maxRetries: 2,
        waitMs: expect.any(Number),
      })),
    )
    // What the last attempt said is kept.
    expect(shownText(deltas)).toBe('I will now')
    expect(error).toMatchObject({ type: 'network', retryable: true, partial: { text: 'I will now', toolCalls: [] } })
  })

  test('because its time was up in the middle of its text is not repeated: the next one would not be done either', async () => {
    await longEnough(0.5, async (timeout) => {
      const { deltas, error, requests } = await askScript([ENDLESS, ENDLESS], { timeout, num_retries: 1 })
      if (deltas[0]?.kind !== 'text') return false
      expect(error?.partial?.text).toMatch(/^a/)
      expect(requests).toHaveLength(1)
      return true
    })
  })

  test('after white space only is repeated', async () => {
    const { answer, deltas } = await askScript([cut({ content: '\n\n' }), done], { num_retries: 1 })
    expect(answer?.text).toBe('done')
    expect(shownText(deltas)).toBe('done')
  })

  test('with an error in the stream is classified by that error', async () => {
    const error = { code: 429, message: 'Rate limit exceeded' }
    const afterText = await askScript([{ text: 'So', error }], { num_retries: 0 })
    expect(afterText.error).toMatchObject({ type: 'rate_limit', retryable: true, partial: { text: 'So' } })
    const atOnce = await askScript([{ raw: [event({ error })] }], { num_retries: 0 })
    expect(atOnce.error).toMatchObject({ type: 'rate_limit', partial: undefined })
    const named = await askScript([{ raw: ['event: error\ndata: {"message":"Overloaded"}\n\n'] }])
    expect(named.error).toMatchObject({ type: 'rate_limit' })
  })
})

describe('the wait before a retry', () => {
  const wait = (headers: Record<string, string>, attempt = 0) =>
    retryWaitMs({ attempt, type: 'network', headers: new Headers(headers), baseMs: 1000 })

  test('doubles, with chance in it, up to a minute', () => {
    for (let attempt = 0; attempt < 20; attempt++) {
      const full = Math.min(1000 * 2 ** attempt, 120_000)
      const ms = retryWaitMs({ attempt, type: 'network', headers: undefined, baseMs: 1000 })
      expect(ms).toBeGreaterThanOrEqual(Math.min(full / 2, 60_000))
      expect(ms).toBeLessThanOrEqual(Math.min(full, 60_000))
    }
  })

  test('respects the provider’s Retry-After, in seconds, milliseconds or as a date', () => {
    expect(wait({ 'retry-after': '7' })).toBe(7000)
    expect(wait({ 'retry-after': '0.5' })).toBe(500)
    expect(wait({ 'retry-after': '7', 'retry-after-ms': '1250' })).toBe(1250)
    vi.setSystemTime('2026-01-01T00:00:00Z')
    expect(wait({ 'retry-after': 'Thu, 01 Jan 2026 00:00:20 GMT' })).toBe(20_000)
    vi.useRealTimers()
  })

  test.each(['0', '-5', 'Thu, 01 Jan 2015 00:00:20 GMT'])(
    'is its own where the provider asks for none: %s',
    (after) => {
      expect(wait({ 'retry-after': after })).toBeGreaterThanOrEqual(500)
      expect(wait({ 'retry-after-ms': '0' })).toBeGreaterThanOrEqual(500)
    },
  )

  test('is never longer than a minute, and its own where the header is nonsense', () => {
    expect(wait({ 'retry-after': '86400' })).toBe(60_000)
    expect(wait({ 'retry-after': 'soon' })).toBeLessThanOrEqual(1000)
  })

  test('is kept: a Retry-After of the server holds the request back, until an abort', async () => {
    await using model = await startScriptedModel([fails(429, { 'retry-after': '3000' }), done])
    const reason = new Error('paused')
    const stop = new AbortController()
    const asking = ask(chatWith(model, { num_retries: 1 }), QUESTION, stop.signal)
    await expect.poll(() => model.requests.length).toBe(1)
    // Others, which come later and are not held back, retry meanwhile.
    const others = await askScript([fails(429), fails(429), fails(429), fails(429), done], { num_retries: 4 })
    expect(others.requests).toHaveLength(5)
    expect(model.requests).toHaveLength(1)
    stop.abort(reason)
    await expect(asking).rejects.toBe(reason)
  })
})

describe('time', () => {
  test('of a request is limited by llm_config.timeout', async () => {
    const { error } = await askScript([{ text: 'late', delay_ms: 5000 }], { timeout: 0.2 })
    expect(error).toMatchObject({ type: 'network', retryable: true })
    expect(error?.message).toContain('llm_config.timeout')
  })

  test('of a whole answer counts until its end', async () => {
    await longEnough(0.5, async (timeout) => {
      const { error } = await askScript([ENDLESS], { timeout })
      expect(error).toMatchObject({ type: 'network' })
      return error?.partial?.text.startsWith('a') ?? false
    })
  })

  test('of a silent stream ends it', async () => {
    const turn = { raw: [event(delta({ content: 'Well' }))], hang: true }
    await using model = await startScriptedModel(() => turn)
    await longEnough(0.1, async (seconds) => {
      const { error } = await ask(chatWith(model, {}, { idleTimeoutMs: seconds * 1000 }))
      expect(error).toMatchObject({ type: 'network', retryable: true })
      expect(error?.message).toContain('silent')
      return error?.partial?.text === 'Well'
    })
    await expect.poll(() => model.requests.at(-1)?.closedEarly).toBe(true)
  })

  test('caused by the reader does not count as the model’s', async () => {
    const limit = { idleTimeoutMs: 500 }
    await using model = await startScriptedModel([{ text: 'a b c', chunk_delay_ms: 1 }])
    const stream = chatWith(model, {}, limit).stream(QUESTION, AbortSignal.timeout(PATIENCE_MS))
    let next = await stream.next()
    // A model that falls silent later comes to the end of the same time.
    const silent = { raw: [event(delta({ content: 'Well' }))], hang: true }
    expect((await askScript([silent], {}, limit)).error?.message).toContain('silent')
    while (!next.done) next = await stream.next()
    expect(next.value.text).toBe('a b c')
  })

  test('is not spent on connections: the one of the last answer is used again', async () => {
    const sockets = new Set<unknown>()
    await using model = await startScriptedModel(inOrder([done, done, { ...done, calls: [] }]))
    const llm = chatWith(model)
    for (let turn = 0; turn < 3; turn++) {
      await ask(llm)
      sockets.add(model.requests.at(-1)?.clientPort)
      // The end of the response follows its last event.
      for (let turn = 0; turn < 200; turn++) await yieldToLoop()
    }
    expect(sockets.size).toBe(1)
  })
})

describe('an abort', () => {
  test.each([
    ['before the request', 0],
    ['before the answer begins', 1],
    ['in the middle of it', 2],
  ])('%s throws the reason and closes the connection', async (_, moment) => {
    const turn =
      moment === 2 ? { raw: [event(delta({ content: 'a' }))], hang: true } : { text: 'late', delay_ms: 60_000 }
    await using model = await startScriptedModel([turn])
    const reason = new Error('paused')
    const stop = new AbortController()
    if (moment === 0) stop.abort(reason)
    const stream = chatWith(model).stream(QUESTION, stop.signal)
    const whole = async () => {
      while (!(await stream.next()).done) if (moment === 2) stop.abort(reason)
    }
    const asking = expect(whole()).rejects.toBe(reason)
    if (moment === 1) {
      await expect.poll(() => model.requests.length).toBe(1)
      stop.abort(reason)
    }
    await asking
    if (moment === 0) return expect(model.requests).toHaveLength(0)
    await expect.poll(() => model.requests[0]?.closedEarly).toBe(true)
  })

  test('of the reading alone closes the connection too', async () => {
    await using model = await startScriptedModel([{ text: 'a b c d e f g h', chunk_delay_ms: 50 }])
    const stream = chatWith(model).stream(QUESTION, AbortSignal.timeout(PATIENCE_MS))
    await stream.next()
    await stream.return(undefined as never)
    await expect.poll(() => model.requests[0]?.closedEarly).toBe(true)
  })

  test('leaves no listener on the signal', async () => {
    await using model = await startScriptedModel(() => done)
    const stop = new AbortController()
    const added = vi.spyOn(stop.signal, 'addEventListener')
    const removed = vi.spyOn(stop.signal, 'removeEventListener')
    await ask(chatWith(model), QUESTION, stop.signal)
    expect(added.mock.calls.length).toBe(removed.mock.calls.length)
  })
})
