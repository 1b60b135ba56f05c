/** The text that was on the screen when somebody interrupted the agent: it is stored, and the model reads it. */
import { expect, test } from 'vitest'
import type { Conversation } from '../../src/conversations/conversation.ts'
import type { ScriptedTurn } from '../../src/llm/scripted/script.ts'
import type { Bench } from './fixtures.ts'
import { endOf, eventsOf, MODEL_KEY, only, say, setBench, userText } from './fixtures.ts'
import { expectWholeTurns } from './wire.ts'

const piece = (delta: object) => `data: ${JSON.stringify({ choices: [{ index: 0, delta }] })}\n\n`

/** Sends these pieces of an answer, and then nothing more. */
const cutAfter = (...deltas: object[]): ScriptedTurn => ({ raw: deltas.map(piece), hang: true })

const SO_FAR = { content: 'First, I will read ' }

/** The first request gets the cut answer, and each other one the text. */
function firstCut(...deltas: object[]): () => ScriptedTurn {
  let isFirst = true
  return () => {
    const turn = isFirst ? cutAfter(...deltas) : { text: 'Good.' }
    isFirst = false
    return turn
  }
}

type Start = (conversation: Conversation) => Promise<{ run_id?: string | undefined }>

const go: Start = (conversation) => conversation.post(userText('go', true))

/** Starts a run, and resolves with its id when pieces of these kinds have been shown. */
async function listen(conversation: Conversation, fields: readonly string[] = ['text_delta'], start: Start = go) {
  const waiting = new Set(fields)
  const { promise: shown, resolve } = Promise.withResolvers<void>()
  const stop = conversation.log.subscribe({
    onTransient: ({ event }) => {
      for (const field of Object.keys(event)) waiting.delete(field)
      if (waiting.size === 0) resolve()
    },
  })
  const { run_id: runId } = await start(conversation)
  await shown
  stop()
  return runId!
}

const answersOf = async (conversation: Conversation) => only(await eventsOf(conversation), 'AssistantMessage')

const lastRequest = ({ model }: Bench) => {
  const { messages } = model.requests.at(-1)!.body
  expectWholeTurns(messages)
  return messages.slice(1).map(({ role, content }) => [role, content])
}

test('an interruption stores the text so far, and the next message follows it', async () => {
  await using bench = await setBench({ script: [cutAfter(SO_FAR), { text: 'Good.' }] })
  const conversation = await bench.converse()
  const runId = await listen(conversation)
  expect(await conversation.pause({ interrupt: true })).toBe('paused')
  expect(await answersOf(conversation)).toMatchObject([
    { partial: true, text: SO_FAR.content, content: [{ type: 'text', text: SO_FAR.content }], tool_use_ids: [] },
  ])
  const result = { stop_reason: 'paused', interrupted: true, steps: 1, final_text: SO_FAR.content }
  expect(await endOf(conversation, runId)).toMatchObject(result)
  expect(await say(conversation, 'write instead')).toMatchObject({ stop_reason: 'completed', final_text: 'Good.' })
  expect(lastRequest(bench)).toEqual([
    ['user', 'go'],
    ['assistant', SO_FAR.content],
    ['user', 'write instead'],
  ])
})

test('a run after an interruption asks the model to continue its text, also after a restart', async () => {
  for (const restarts of [false, true]) {
    await using bench = await setBench({ script: [cutAfter(SO_FAR), { text: 'the tests.' }] })
    const conversation = await bench.converse()
    await listen(conversation)
    await conversation.pause({ interrupt: true })
    if (restarts) await bench.restart()
    const again = await bench.manager.open(conversation.id)
    expect(await endOf(again, await again.run())).toMatchObject({ final_text: 'the tests.' })
    expect(lastRequest(bench)).toEqual([
      ['user', 'go'],
      ['assistant', SO_FAR.content],
      ['user', 'Continue.'],
    ])
  }
})

test.each(['a plain pause', 'a stop of the server'])(
  '%s stores nothing of the answer, and run asks again',
  async (how) => {
    await using bench = await setBench({ script: firstCut(SO_FAR) })
    const conversation = await bench.converse()
    await listen(conversation)
    if (how === 'a plain pause') await conversation.pause({ interrupt: false })
    else await bench.restart()
    const again = await bench.manager.open(conversation.id)
    expect(await answersOf(again)).toEqual([])
    expect(only(await eventsOf(again), 'Result')[0]).not.toHaveProperty('interrupted')
    expect(await endOf(again, await again.run())).toMatchObject({ final_text: 'Good.' })
    expect(lastRequest(bench)).toEqual([['user', 'go']])
  },
)

test('neither a call nor a thought that was cut off is stored with the text', async () => {
  const thought = { reasoning_content: 'I wonder' }
  const call = { tool_calls: [{ index: 0, id: 'call_1', function: { name: 'Write', arguments: '{"path":' } }] }
  await using bench = await setBench({ script: [cutAfter(thought, SO_FAR, call), { text: 'Good.' }] })
  const conversation = await bench.converse()
  await listen(conversation, ['reasoning_delta', 'text_delta', 'tool_input_delta'])
  await conversation.pause({ interrupt: true })
  expect(await answersOf(conversation)).toMatchObject([
    { content: [{ type: 'text', text: SO_FAR.content }], tool_use_ids: [] },
  ])
  expect(only(await eventsOf(conversation), 'ToolUse')).toEqual([])
})

test.each([
  ['a thought', { reasoning_content: 'I wonder' }, 'reasoning_delta'],
  ['characters that nobody sees', { content: ' \n\u200b\u2060' }, 'text_delta'],
])('%s alone is not stored', async (_, delta, field) => {
  await using bench = await setBench({ script: firstCut(delta) })
  const conversation = await bench.converse()
  await listen(conversation, [field])
  await conversation.pause({ interrupt: true })
  expect(await answersOf(conversation)).toEqual([])
  expect(await say(conversation)).toMatchObject({ final_text: 'Good.' })
})

test('a part of an answer that a hook could not judge is not stored', async () => {
  await using bench = await setBench({ script: firstCut(SO_FAR) })
  const judge = { type: 'command', command: 'cat > /dev/null' }
  const conversation = await bench.converse({ hooks: { PostModelCall: [{ hooks: [judge] }] } })
  await listen(conversation)
  await conversation.pause({ interrupt: true })
  expect(await answersOf(conversation)).toEqual([])
  await say(conversation)
  expect(await answersOf(conversation)).toMatchObject([{ text: 'Good.' }])
})

test('a key that was split over the pieces, or cut off, is in no event', async () => {
  const [head, tail] = [MODEL_KEY.slice(0, -4), MODEL_KEY.slice(-4)]
  for (const last of [[tail], []]) {
    const words = ['It is ', head, ...last]
    await using bench = await setBench({ script: [cutAfter(...words.map((content) => ({ content })))] })
    const conversation = await bench.converse()
    await listen(conversation)
    await conversation.pause({ interrupt: true })
    expect(await answersOf(conversation)).toMatchObject([{ text: expect.stringContaining('It is ') }])
    expect(JSON.stringify(await eventsOf(conversation))).not.toContain(head)
  }
})

test('the time limit of a run stores the text so far as well', async () => {
  await using bench = await setBench({ script: [cutAfter(SO_FAR)] })
  const conversation = await bench.converse()
  const runId = await listen(conversation)
  await bench.configure(conversation.id, { max_seconds_per_run: 0.01 })
  expect(await endOf(conversation, runId)).toMatchObject({ stop_reason: 'time_limit', final_text: SO_FAR.content })
  expect(await answersOf(conversation)).toMatchObject([{ partial: true, text: SO_FAR.content }])
})

test('a cancelled task stores the text so far as well', async () => {
  await using bench = await setBench({ script: [cutAfter(SO_FAR)] })
  const conversation = await bench.converse()
  const runnable = { type: 'AgentRun', message: { role: 'user', content: 'go' } } as const
  await listen(conversation, ['text_delta'], async ({ tasks }) => {
    await tasks.post({ title: 'go', runnable })
    return { run_id: undefined }
  })
  await conversation.tasks.cancel(conversation.state.tasks[0]!.id)
  expect(await answersOf(conversation)).toMatchObject([{ partial: true, text: SO_FAR.content }])
})
