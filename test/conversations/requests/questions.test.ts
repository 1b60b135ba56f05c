import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Conversation } from '../../../src/conversations/conversation.ts'
import { readSnapshot, writeSnapshot } from '../../../src/state/snapshot.ts'
import type { ScriptedTurn } from '../../../src/llm/scripted/script.ts'
import { createAskUserQuestion } from '../../../src/tools/ask-user-question.ts'
import type { Tool } from '../../../src/tools/tool.ts'
import type { Bench } from '../fixtures.ts'
import { call, eventsOf, only, openStorage, setBench, tool, userText } from '../fixtures.ts'
import { askCall } from '../actions.ts'
import { mortalStore } from '../mortal-store.ts'
import { answersIn, approvalsOf, openedIn, questionsOf } from '../../support/answering.ts'

const ACT = tool('Act', () => ({ output: 'acted' }))

type Scene = AsyncDisposable & { bench: Bench; id: string; conversation: () => Promise<Conversation> }

async function setScene(
  turns: ScriptedTurn[],
  fields: object = {},
  tools: Tool[] = [],
): Promise<Scene & { crash: () => Promise<void> }> {
  const store = mortalStore()
  const bench = await setBench({ logs: store, script: turns, tools: [ACT, createAskUserQuestion(), ...tools] })
  const id = await bench.create(fields)
  return {
    bench,
    id,
    conversation: () => bench.manager.open(id),
    crash: () => bench.restart({ kill: true, between: store.die }),
    [Symbol.asyncDispose]: () => bench[Symbol.asyncDispose](),
  }
}

const settled = (conversation: Conversation, status: string) =>
  expect.poll(() => conversation.state.status, { interval: 5 }).toBe(status)

async function ask({ conversation }: Scene): Promise<Conversation> {
  const opened = await conversation()
  await opened.post(userText('go', true))
  await settled(opened, 'waiting_for_input')
  return opened
}

const answerAll = async (conversation: Conversation, text = 'Yes') => {
  const questions = questionsOf(conversation)
  for (const { question_id } of questions.pending().items) await questions.answer(question_id, { '0': text })
}

const DONE: ScriptedTurn = { text: 'Done.' }

test('a call with invalid questions asks nothing: the model learns why, in its place among the others', async () => {
  const wrong = call('AskUserQuestion', { questions: [] })
  await using scene = await setScene([{ calls: [wrong, askCall(), call('Act')] }, DONE])
  const conversation = await ask(scene)
  expect(questionsOf(conversation).pending().items).toHaveLength(1)
  await answerAll(conversation)
  await settled(conversation, 'idle')
  const read = scene.bench.model.requests.at(-1)!.body.messages.filter(({ role }) => role === 'tool')
  expect(read.map(({ content }) => String(content))).toEqual([
    expect.stringContaining('do not fit AskUserQuestion'),
    expect.stringContaining('"Go on?"="Yes"'),
    'acted',
  ])
})

test('as many questions as a turn can have are asked, listed over a crash, and closed by a message', async () => {
  const calls = Array.from({ length: 128 }, (_, n) => askCall(`${n} ${'x'.repeat(500)}`))
  await using scene = await setScene([{ calls }, DONE])
  const before = await ask(scene)
  const { items } = questionsOf(before).pending()
  expect(items).toHaveLength(128)
  await questionsOf(before).answer(items[100]!.question_id, { '0': 'first' })
  await scene.crash()
  const conversation = await scene.conversation()
  expect(questionsOf(conversation).pending().items).toEqual(items.filter((_, at) => at !== 100))
  await conversation.post(userText('too many', true))
  await settled(conversation, 'idle')
  const events = await eventsOf(conversation)
  expect(answersIn(events, 'question')).toHaveLength(1)
  expect(only(events, 'ToolResult')).toHaveLength(128)
})

test('a snapshot of the state has the questions; one that an earlier version wrote is not used', async () => {
  await using scene = await setScene([{ calls: [askCall()] }, DONE])
  const { state } = await ask(scene)
  const storage = await openStorage(scene.bench.dataDir)
  await writeSnapshot(storage, state)
  expect((await readSnapshot(storage, scene.id))?.requests).toEqual(state.requests)
  const { requests: _, ...earlier } = state
  await storage.snapshots.write(scene.id, { format: 1, ...earlier })
  expect(await readSnapshot(storage, scene.id)).toBeUndefined()
})

test('any tool can ask: the answer is the result of its call, and the tool does not run', async () => {
  const ran: unknown[] = []
  const asked = [{ question: 'Sure?', header: '', options: [], multi_select: false }]
  const tools = [
    tool('Other', (input) => ({ output: ran.push(input) }), { input: z.looseObject({}), questions: () => asked }),
  ]
  await using bench = await setBench({ script: [{ calls: [call('Other')] }, DONE], tools })
  const conversation = await bench.converse()
  await conversation.post(userText('go', true))
  await settled(conversation, 'waiting_for_input')
  await answerAll(conversation, 'of course')
  await settled(conversation, 'idle')
  expect(only(await eventsOf(conversation), 'ToolResult')).toMatchObject([
    { is_error: false, output: expect.stringContaining('"Sure?"="of course"') },
  ])
  expect(ran).toEqual([])
})

test('two answers at the same moment: one counts', async () => {
  await using scene = await setScene([{ calls: [askCall()] }, DONE])
  const conversation = await ask(scene)
  const { question_id } = questionsOf(conversation).pending().items[0]!
  const outcomes = await Promise.allSettled(
    ['A', 'B', 'A', 'B'].map((text) => questionsOf(conversation).answer(question_id, { '0': text })),
  )
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'rejected'])
  expect(outcomes[1]).toMatchObject({ reason: { code: 'already_answered' } })
  await settled(conversation, 'idle')
  expect(answersIn(await eventsOf(conversation), 'question')).toHaveLength(1)
})

test('a fork closes what the original still asks', async () => {
  await using scene = await setScene([{ calls: [askCall()] }, DONE])
  const original = await ask(scene)
  const [question] = openedIn(await eventsOf(original), 'question')
  for (const at_seq of [undefined, question!.seq]) {
    const { id } = await scene.bench.manager.fork(scene.id, {
      workdir: 'share',
      ...(at_seq !== undefined && { at_seq }),
    })
    const fork = await scene.bench.manager.open(id)
    expect(questionsOf(fork).pending().items).toEqual([])
    expect(fork.state).toMatchObject({ status: 'paused', openCalls: [] })
    await expect(questionsOf(fork).answer(question!.request_id, { '0': 'Yes' })).rejects.toMatchObject({
      code: 'request_closed',
    })
  }
  expect(questionsOf(original).pending().items).toHaveLength(1)
})

describe('a tool that asks while it runs', () => {
  const questions = ['Sure?', 'And now?'].map((question) => ({
    question,
    header: '',
    options: [],
    multi_select: false,
  }))
  const asker = tool('Asker', async (_, { openRequest, toolUseId, signal }) => {
    const answers = (
      await openRequest({ kind: 'elicitation', toolUseId, payload: { server: 'forms', questions }, signal })
    )?.answers
    if (!answers) return { output: 'nobody', error: { type: 'interrupted', message: 'Nobody answered.' } }
    return { output: `It was: ${JSON.stringify(answers)}` }
  })

  async function setAsking() {
    const scene = await setScene([{ calls: [call('Asker'), call('Act')] }, DONE], {}, [asker])
    const conversation = await scene.conversation()
    await conversation.post(userText('go', true))
    await expect.poll(() => questionsOf(conversation, 'elicitation').pending().items).toHaveLength(1)
    return {
      scene,
      conversation,
      question_id: questionsOf(conversation, 'elicitation').pending().items[0]!.question_id,
    }
  }

  const resultsOf = async (conversation: Conversation) => only(await eventsOf(conversation), 'ToolResult')

  test('gets the answer and writes the result; the run is at work until then', async () => {
    const { scene, conversation, question_id } = await setAsking()
    await using _ = scene
    expect(conversation.state.status).toBe('running')
    await expect(conversation.run()).rejects.toMatchObject({ code: 'already_running' })
    await expect(approvalsOf(conversation).reject()).rejects.toMatchObject({ code: 'nothing_pending' })
    expect(await questionsOf(conversation, 'elicitation').answer(question_id, { '1': 'yes' })).toEqual({
      status: 'running',
      pending: 0,
    })
    await settled(conversation, 'idle')
    expect(await resultsOf(conversation)).toMatchObject([
      { is_error: false, output: 'It was: {"And now?":["yes"]}' },
      { output: 'acted' },
    ])
    await expect(questionsOf(conversation, 'elicitation').answer(question_id, { '1': 'no' })).rejects.toMatchObject({
      code: 'already_answered',
    })
  })

  test('still asks during a pause, and continues with the next run', async () => {
    const { scene, conversation, question_id } = await setAsking()
    await using _ = scene
    await conversation.pause({ interrupt: false })
    await conversation.run()
    expect(conversation.state.status).toBe('running')
    await conversation.pause({ interrupt: false })
    expect(await questionsOf(conversation, 'elicitation').answer(question_id, { '0': 'yes' })).toEqual({
      status: 'paused',
      pending: 0,
    })
    await conversation.run()
    await settled(conversation, 'idle')
    expect(await resultsOf(conversation)).toMatchObject([{ is_error: false }, { output: 'acted' }])
  })

  test.each(['interrupt', 'crash', 'stop'] as const)(
    'is interrupted by a %s, which closes the question',
    async (how) => {
      const { scene, conversation: before, question_id } = await setAsking()
      await using _ = scene
      if (how === 'interrupt') await before.pause({ interrupt: true })
      else if (how === 'stop') await scene.bench.restart()
      else await scene.crash()
      const conversation = await scene.conversation()
      expect(conversation.state).toMatchObject({ status: 'paused', requests: [], openCalls: [] })
      expect((await resultsOf(conversation)).map(({ error_type }) => error_type)).toEqual([
        'interrupted',
        'interrupted',
      ])
      await expect(questionsOf(conversation, 'elicitation').answer(question_id, { '0': 'yes' })).rejects.toMatchObject({
        code: 'request_closed',
      })
    },
  )
})
