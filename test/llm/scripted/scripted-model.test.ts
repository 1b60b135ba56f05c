import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { LlmRequest, ModelMessage } from '../../../src/llm/llm.ts'
import { inOrder, loadScript } from '../../../src/llm/scripted/script.ts'
import type { Script } from '../../../src/llm/scripted/script.ts'
import { startScriptedModel } from '../../../src/llm/scripted/scripted-model.ts'
import { ask, chatWith, QUESTION } from '../asking.ts'

const said = (text: string): ModelMessage => ({ role: 'user', content: [{ type: 'text', text }] })
const answered: ModelMessage = { role: 'assistant', text: 'x', toolCalls: [] }
const with_ = (...messages: ModelMessage[]): LlmRequest => ({ ...QUESTION, messages })

async function play(script: Script, ...requests: LlmRequest[]): Promise<(string | undefined)[]> {
  await using model = await startScriptedModel(script)
  const llm = chatWith(model)
  const texts = []
  for (const request of requests) {
    const { answer, error } = await ask(llm, request)
    texts.push(answer?.text ?? error?.type)
  }
  return texts
}

describe('a script of turns', () => {
  const turns = [{ text: 'one' }, { text: 'two' }]

  test('is selected by the answers in the conversation, for any number of conversations at once', async () => {
    const first = with_(said('a'))
    const second = with_(said('a'), answered, said('b'))
    expect(await play(turns, first, first, second, first, second)).toEqual(['one', 'one', 'two', 'one', 'two'])
  })

  test('meets failing turns once each, in each conversation', async () => {
    const failing = [{ status: 503 }, { text: 'one' }, { status: 400 }, { status: 401 }, { text: 'two' }]
    const first = with_(said('a'))
    const second = with_(said('a'), answered)
    expect(await play(failing, first, first, second, second, second, with_(said('other')))).toEqual([
      'network',
      'one',
      'config',
      'auth',
      'two',
      'network',
    ])
  })

  test('says loudly that it is too short', async () => {
    await using model = await startScriptedModel([{ text: 'one' }])
    const { error } = await ask(chatWith(model), with_(said('a'), answered))
    expect(error?.message).toContain('the script has no turn 1')
  })
})

test('replies are chosen by the words of the user and start over with each message', async () => {
  const script = {
    replies: [{ when: 'tree', turns: [{ text: 'oak' }, { text: 'elm' }] }, { turns: [{ text: 'what?' }] }],
  }
  const requests = [
    with_(said('A Tree!')),
    with_(said('A Tree!'), answered),
    with_(said('tree'), answered, said('hm')),
    with_(said('hm'), answered, said('tree')),
  ]
  expect(await play(script, ...requests)).toEqual(['oak', 'elm', 'what?', 'oak'])
})

test('a script in order counts requests, and a function may choose freely', async () => {
  const same = with_(said('a'))
  expect(await play(inOrder([{ text: 'one' }, { text: 'two' }]), same, same, same)).toEqual(['one', 'two', 'config'])
  expect(await play(({ attempt }) => ({ text: `${attempt}` }), same, same)).toEqual(['0', '1'])
})

test('every request is kept as it came', async () => {
  await using model = await startScriptedModel([{ text: 'a' }])
  await ask(chatWith(model, { api_key: 'k' }))
  expect(model.requests).toHaveLength(1)
  const [request] = model.requests
  expect(request).toMatchObject({ path: '/v1/chat/completions', closedEarly: false, attempt: 0 })
  expect(request?.headers.authorization).toBe('Bearer k')
  expect(JSON.parse(request!.text)).toEqual(request?.body)
})

test('answers a request that does not stream with one document', async () => {
  await using model = await startScriptedModel([{ text: 'a b' }])
  const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x' }] })
  const response = await fetch(`${model.baseUrl}/chat/completions`, { method: 'POST', body })
  expect(await response.json()).toMatchObject({ choices: [{ message: { content: 'a b' }, finish_reason: 'stop' }] })
})

test('closes while an answer is in progress', async () => {
  const model = await startScriptedModel([{ text: 'a b c d', chunk_delay_ms: 1000 }])
  const pending = ask(chatWith(model))
  await expect.poll(() => model.requests.length).toBe(1)
  await model.close()
  expect((await pending).error?.type).toBe('network')
})

describe('a script in a file', () => {
  async function load(text: string) {
    const folder = await mkdtemp(join(tmpdir(), 'script-'))
    const path = join(folder, 'demo.json')
    await writeFile(path, text)
    try {
      return await loadScript(path)
    } finally {
      await rm(folder, { recursive: true })
    }
  }

  test('is a valid script', async () => {
    const turns = [{ text: 'hello', calls: [{ name: 'Bash', arguments: { command: 'ls' } }] }]
    expect(await load(JSON.stringify(turns))).toEqual(turns)
    expect(await load(JSON.stringify({ replies: [{ turns }] }))).toEqual({ replies: [{ turns }] })
  })

  test.each([
    ['no JSON', '[{', /demo\.json.*\n.*JSON/],
    ['an unknown field', '[{"txt":"hello"}]', /demo\.json[^]*txt/],
    ['a wrong value', '{"replies":[{"turns":[{"delay_ms":"soon"}]}]}', /demo\.json[^]*delay_ms/],
  ])('with %s is refused, and the error says where', async (_, text, message) => {
    await expect(load(text)).rejects.toThrow(message)
  })
})
