/** When a context is compacted, what the model is asked then, and what is stored: of one compactor with its dependencies replaced. */
import { describe, expect, test } from 'vitest'
import type { CompactorDeps } from '../../../src/agent/compaction/compactor.ts'
import { CompactionBlocked, Compactor } from '../../../src/agent/compaction/compactor.ts'
import type { ListedMessage } from '../../../src/agent/history/message-list.ts'
import type { CompactionSettings } from '../../../src/contract/compaction/settings.ts'
import type { EventDraft } from '../../../src/contract/events/event.ts'
import type { LlmConfig } from '../../../src/contract/values/llm-config.ts'
import { LlmError } from '../../../src/llm/errors/llm-error.ts'
import type { LlmAnswer, LlmRequest, LlmRetry, ModelMessage } from '../../../src/llm/llm.ts'

const usage = { input_tokens: 10, output_tokens: 2, cached_tokens: 0, reasoning_tokens: 0 }
const user = (text: string): ModelMessage => ({ role: 'user', content: [{ type: 'text', text }] })
const retry: LlmRetry = { kind: 'retry', type: 'rate_limit', message: 'busy', retry: 1, maxRetries: 3, waitMs: 0 }

/** Ten turns of 100 tokens each, and a prompt of 100. */
const TURNS: ListedMessage[] = Array.from({ length: 10 }, (_, at) => {
  const text = `${at} `.repeat(200)
  const says: ModelMessage = { role: 'assistant', text, toolCalls: [] }
  return { seq: at + 1, kind: at === 0 ? 'user' : 'other', message: at === 0 ? user(text) : says }
})

type Setting = {
  readonly llm?: LlmConfig
  readonly compaction?: CompactionSettings
  /** The windows by the name of the model. */
  readonly windows?: Readonly<Record<string, number>>
  readonly tokens?: number
  readonly entries?: readonly ListedMessage[]
  /** In turn; the last one again and again. */
  readonly replies?: readonly (string | Error)[]
  readonly deps?: Partial<CompactorDeps>
}

function compactorOf(setting: Setting = {}) {
  const { llm, compaction, windows = {}, tokens = 1000, entries = TURNS, replies = ['Done.'], deps = {} } = setting
  const seen = {
    requests: [] as LlmRequest[],
    models: [] as LlmConfig[],
    order: [] as unknown[],
    emitted: [] as EventDraft[],
  }
  const history: CompactorDeps['history'] = {
    system: 's'.repeat(400),
    messages: entries.map(({ message }) => message),
    entries,
    forgottenThrough: 0,
    size: { of: () => tokens, scaled: (each: number) => each } as never,
  }
  const compactor = new Compactor({
    runId: 'run',
    history,
    settings: () => ({ llm_config: llm ?? { model: 'm' }, compaction }),
    catalog: { windowOf: ({ model = '' }) => windows[model], costOf: () => 0.125 },
    tools: () => [],
    createLlm: (config) => ({
      model: config.model ?? '',
      async *stream(request) {
        seen.models.push(config)
        const reply = replies[Math.min(seen.requests.push(request), replies.length) - 1]!
        if (reply instanceof Error) throw reply
        yield retry
        yield { kind: 'text', text: reply }
        const fields = { reasoning: '', toolCalls: [], usage, costUsd: 0.25, stopReason: 'stop', model: '' }
        return { ...fields, text: reply } satisfies LlmAnswer
      },
    }),
    activeRun: () => 'run',
    tasks: () => 'the tasks',
    runHooks: (call) => void seen.order.push(['before', call]),
    tellHooks: (done) => void seen.order.push(['after', done]),
    emit: async (drafts) => {
      seen.emitted.push(...drafts)
      seen.order.push(...drafts.map(({ type }) => type))
    },
    ...deps,
  })
  const { signal } = new AbortController()
  return { compactor, seen, compact: compactor.compact.bind(compactor), signal }
}

const wordsOf = ({ messages }: LlmRequest) => JSON.stringify(messages.at(-1))
/** Whether the request has the conversation itself, or a text of it. */
const isInPlace = (request: LlmRequest) => !wordsOf(request).includes('<conversation>')

describe('a context is due', () => {
  const isDue = (setting: Setting) => compactorOf(setting).compactor.isDue()

  test('from the share of the window on that was set, or from four fifths', () => {
    const windows = { m: 1000 }
    const compaction = { threshold: 0.5 }
    expect([499, 500].map((tokens) => isDue({ windows, compaction, tokens }))).toEqual([false, true])
    const shares = Array.from({ length: 1001 }, (_, tokens) => tokens)
    expect(shares.find((tokens) => isDue({ windows, tokens }))).toBe(800)
  })

  test('when the answer would not fit, which takes half of the window at most', () => {
    const windows = { m: 1000 }
    const llm = (max_output_tokens: number) => ({ model: 'm', max_output_tokens })
    expect([699, 700].map((tokens) => isDue({ windows, llm: llm(300), tokens }))).toEqual([false, true])
    expect([499, 500].map((tokens) => isDue({ windows, llm: llm(900), tokens }))).toEqual([false, true])
  })

  test('later if the prompt and the tools alone reach the threshold, so that messages have room', () => {
    const windows = { m: 200 }
    const compaction = { threshold: 0.5 }
    expect([129, 130].map((tokens) => isDue({ windows, compaction, tokens }))).toEqual([false, true])
    const tool = { name: 'T', description: 'D'.repeat(400), inputSchema: {} }
    const deps = { tools: () => [tool] }
    expect(isDue({ windows, compaction, tokens: 230, deps })).toBe(false)
    expect(isDue({ windows, compaction, tokens: 300, deps })).toBe(true)
  })

  test('without a look at the tools while the messages are below the threshold', () => {
    let reads = 0
    const deps = { tools: () => (reads++, []) }
    expect(isDue({ windows: { m: 1000 }, tokens: 799, deps })).toBe(false)
    expect(reads).toBe(0)
  })

  test('never with enabled: false, nor with an unknown window', () => {
    expect(isDue({ windows: { m: 1000 }, tokens: 5000, compaction: { enabled: false } })).toBe(false)
    expect(isDue({ tokens: 1e9 })).toBe(false)
  })
})

describe('a compaction', () => {
  test('stores what it did, after one hook and before another', async () => {
    const { compact, seen, signal } = compactorOf()
    const draft = await compact('request', signal, 'Be brief.')
    expect(draft).toEqual({
      type: 'Condensation',
      source: 'environment',
      run_id: 'run',
      trigger: 'request',
      forgotten_through_seq: 8,
      kept_message_seqs: [1],
      shortened_through_seq: 8,
      max_result_chars: 1000,
      summary: 'Done.',
      tasks: 'the tasks',
      instructions: 'Be brief.',
      model: 'm',
      usage,
      cost_usd: 0.25,
      tokens_before: 1000,
      tokens_after: 494,
    })
    expect(seen.order).toEqual([
      ['before', { trigger: 'request', instructions: 'Be brief.' }],
      'ModelRetry',
      'Condensation',
      ['after', { trigger: 'request', summary: 'Done.' }],
    ])
    expect(seen.emitted[0]).toMatchObject({ run_id: 'run', retry: 1 })
    expect(seen.emitted[1]).toEqual(draft)
  })

  test('leaves out a run, tasks, wishes and a summary if they are absent', async () => {
    const { compact, signal } = compactorOf({
      replies: [''],
      deps: { runId: undefined as never, tasks: () => undefined },
    })
    const draft = await compact('request', signal)
    expect(draft).toMatchObject({ failure: 'the model wrote an empty summary', usage: { input_tokens: 40 } })
    for (const name of ['run_id', 'tasks', 'instructions', 'summary']) expect(draft).not.toHaveProperty(name)
  })

  test('has the wishes of the client and of hooks in the request', async () => {
    const { compact, seen, signal } = compactorOf({ deps: { runHooks: async () => ({ context: 'Keep names.' }) } })
    expect(await compact('request', signal, 'Be brief.')).toMatchObject({ instructions: 'Be brief.\n\nKeep names.' })
    expect(wordsOf(seen.requests[0]!)).toContain(String.raw`Be brief.\n\nKeep names.`)
    expect(await compact('request', signal)).toMatchObject({ instructions: 'Keep names.' })
  })

  test('that hooks block does nothing, and says so to the client that asked for it', async () => {
    const { compact, seen, signal } = compactorOf({ deps: { runHooks: async () => ({ block: 'Not now.' }) } })
    await expect(compact('request', signal)).rejects.toThrow(new CompactionBlocked('Not now.'))
    await expect(compact('request', signal)).rejects.toBeInstanceOf(CompactionBlocked)
    expect(await compact('context_window', signal)).toBeUndefined()
    expect(seen).toMatchObject({ requests: [], emitted: [] })
  })

  test('that is aborted while hooks run asks no model, and while the model writes stores nothing', async () => {
    const reason = new Error('aborted')
    const early = new AbortController()
    const first = compactorOf({ deps: { runHooks: async () => (early.abort(reason), {}) } })
    await expect(first.compact('request', early.signal)).rejects.toBe(reason)
    expect(first.seen.requests).toEqual([])
    const late = new AbortController()
    const sent = { settled: async () => late.abort(reason), mark: () => {} } as never
    const second = compactorOf({ replies: ['Done.'], deps: { sent, createLlm: answersAtOnce } })
    await expect(second.compact('request', late.signal)).rejects.toBe(reason)
    expect(second.seen.emitted).toEqual([])
  })

  test('happens with enabled: false only if a client asks for it', async () => {
    const { compact, signal } = compactorOf({ compaction: { enabled: false } })
    expect(await compact('context_window', signal)).toBeUndefined()
    expect(await compact('request', signal)).toMatchObject({ summary: 'Done.' })
  })

  test('that only shortens old results asks no model, and has no summary', async () => {
    const entries = TURNS.map((turn, at): ListedMessage => {
      const message: ModelMessage = { role: 'tool', toolCallId: `${at}`, content: 'x'.repeat(8000) }
      return at === 0 ? turn : { ...turn, message, origin: { eventId: `${at}`, path: undefined } }
    })
    const { compact, seen, signal } = compactorOf({ entries, tokens: 18_500 })
    const draft = await compact('context_window', signal)
    expect(draft).toMatchObject({ trigger: 'context_window', forgotten_through_seq: 0, tokens_before: 18_500 })
    for (const name of ['summary', 'failure', 'model', 'usage', 'tasks']) expect(draft).not.toHaveProperty(name)
    expect(seen.requests).toEqual([])
    expect(seen.order.at(-1)).toEqual(['after', { trigger: 'context_window', summary: undefined }])
    expect(await compact('request', signal), 'A client asks for a summary.').toMatchObject({ summary: 'Done.' })
  })

  test('of nothing that could be left out does nothing, and calls no hook', async () => {
    const { compact, seen, signal } = compactorOf({ entries: [] })
    expect(await compact('request', signal)).toBeUndefined()
    expect(await compact('context_window', signal)).toBeUndefined()
    expect(seen).toMatchObject({ requests: [], order: [] })
  })

  test('waits for messages that are being withdrawn, and then says that the others are sent', async () => {
    const steps: string[] = []
    const sent = { settled: async () => void steps.push('settled'), mark: () => steps.push('mark') } as never
    const { compact, signal } = compactorOf({ deps: { sent } })
    await compact('request', signal)
    expect(steps).toEqual(['settled', 'mark'])
  })
})

const answersAtOnce: CompactorDeps['createLlm'] = () => ({
  model: 'm',
  // oxlint-disable-next-line require-yield -- It answers at once.
  async *stream() {
    return { text: 'Done.', reasoning: '', toolCalls: [], usage, costUsd: 0, stopReason: 'stop', model: 'm' }
  },
})

describe('a summary is asked for', () => {
  /** The requests of a compaction for which no summary is good enough. */
  const requestsOf = async (setting: Setting, trigger: 'request' | 'context_window' = 'request') => {
    const { compact, seen, signal } = compactorOf({ replies: [''], ...setting })
    await compact(trigger, signal)
    return seen
  }
  const inPlace = async (setting: Setting, trigger?: 'context_window') =>
    (await requestsOf(setting, trigger)).requests.map(isInPlace)

  test('first in the conversation itself, and then with shorter and shorter texts of it', async () => {
    const tool = { name: 'T', description: 'D', inputSchema: {} }
    const { requests } = await requestsOf({ deps: { tools: () => [tool] } })
    expect(requests[0]).toMatchObject({ system: 's'.repeat(400), tools: [tool] })
    expect(requests.map(isInPlace)).toEqual([true, false, false, false])
    expect(requests[0]!.messages.slice(0, -1)).toEqual(TURNS.map(({ message }) => message))
    const lengths = requests.slice(1).map((request) => wordsOf(request).length)
    expect(lengths).toEqual(lengths.toSorted((a, b) => b - a))
    expect(new Set(lengths).size).toBe(3)
  })

  test('with a text at once if the conversation was refused, does not fit, or another model writes it', async () => {
    expect(await inPlace({}, 'context_window')).toEqual([false, false, false])
    // The summary of 1000 characters takes a third of that in tokens.
    expect(await inPlace({ windows: { m: 1334 } })).toEqual([true, false, false, false])
    expect(await inPlace({ windows: { m: 1333 } })).toEqual([false, false, false])
    const deps = { runHooks: async () => ({ context: 'x'.repeat(40) }) }
    expect(await inPlace({ windows: { m: 1344 }, deps })).toEqual([true, false, false, false])
    expect(await inPlace({ windows: { m: 1343 }, deps })).toEqual([false, false, false])
    expect(await inPlace({ compaction: { model: 'small' } })).toEqual([false, false, false])
  })

  test('with a text that fits half of the window of the model that writes it', async () => {
    const lengthFor = async (windows: Readonly<Record<string, number>>) => {
      const { requests } = await requestsOf({ windows, compaction: { model: 'small' } })
      return wordsOf(requests[0]!).split('</conversation>')[0]!.length
    }
    const whole = await lengthFor({})
    expect(whole).toBeGreaterThan(2800)
    expect(await lengthFor({ small: 1000 })).toBeLessThan(1700)
    expect(await lengthFor({ small: 1000 })).toBeGreaterThan(800)
    expect(await lengthFor({ m: 1000 })).toBe(await lengthFor({ small: 1000 }))
    expect(await lengthFor({ m: 1000, small: 100_000 })).toBe(whole)
  })

  test('of a length that fits what the context should have afterwards', async () => {
    const message: ModelMessage = { role: 'assistant', text: 'x'.repeat(4000), toolCalls: [] }
    const entries = TURNS.map((turn) => ({ ...turn, message }))
    const lengthFor = async (setting: Setting, trigger?: 'context_window') => {
      const { requests } = await requestsOf({ tokens: 10_000, entries, ...setting }, trigger)
      return /at most (\d+) characters/.exec(wordsOf(requests[0]!))?.[1]
    }
    expect(await lengthFor({})).toBe('6000')
    expect(await lengthFor({}, 'context_window')).toBe('3000')
    expect(await lengthFor({ windows: { m: 5000 } })).toBe('2400')
    expect(await lengthFor({ windows: { m: 20_000 } }, 'context_window')).toBe('3000')
  })

  test('that is cut off at twice that length, and costs what its model costs', async () => {
    const { compact, signal } = compactorOf({ replies: ['x'.repeat(2001)] })
    expect(await compact('request', signal)).toMatchObject({ summary: `${'x'.repeat(2000)} […]`, cost_usd: 0.125 })
  })

  test('from a model that may choose to call no tool', async () => {
    const choiceFor = async (tool_choice: LlmConfig['tool_choice']) =>
      (await requestsOf({ llm: { model: 'm', ...(tool_choice && { tool_choice }) } })).models[0]
    expect(await choiceFor('required')).toEqual({ model: 'm' })
    expect(await choiceFor('none')).toEqual({ model: 'm', tool_choice: 'none' })
    expect(await choiceFor(undefined)).toEqual({ model: 'm' })
  })

  test('not again after an error that is not about its content', async () => {
    const auth = new LlmError('auth', 'no')
    const { compact, seen, signal } = compactorOf({ replies: [auth] })
    await expect(compact('request', signal)).rejects.toBe(auth)
    expect(seen.emitted).toEqual([])
  })
})
