import { describe, expect, test } from 'vitest'
import type { Conversation } from '../../src/conversations/conversation.ts'
import type { ScriptedTurn } from '../../src/llm/scripted/script.ts'
import type { Bench } from './fixtures.ts'
import { call, eventsOf, only, setBench, tool, until, userText } from './fixtures.ts'
import { mortalStore } from './mortal-store.ts'
import { expectWholeTurns } from './wire.ts'
import { approvalsOf } from '../support/answering.ts'

type Scene = AsyncDisposable & {
  bench: Bench
  conversation: () => Promise<Conversation>
  crash: () => Promise<void>
  /** Lets the model give its first answer. */
  answer: () => void
}

/** A model whose first answer is held back, so that messages can come in the meantime. */
async function setScene(first: ScriptedTurn): Promise<Scene> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const store = mortalStore()
  const bench = await setBench({
    logs: store,
    tools: [
      tool('Act', () => ({ output: 'acted' })),
      tool('Finish', () => ({ output: 'bye' }), { finishes: true, harmless: true }),
    ],
    script: async ({ body }) => {
      if (body.messages.some(({ role }) => role === 'assistant')) return { text: 'I have read it.' }
      if (JSON.stringify(body.messages).includes('and this')) return { text: 'I have read it.' }
      await promise
      return first
    },
  })
  const id = await bench.create({ confirmation_mode: true })
  return {
    bench,
    conversation: () => bench.manager.open(id),
    crash: () => bench.restart({ kill: true, between: store.die }),
    answer: resolve,
    async [Symbol.asyncDispose]() {
      resolve()
      await bench[Symbol.asyncDispose]()
    },
  }
}

const ASKS: ScriptedTurn = { calls: [call('Act')] }

const modelCall = (bench: Bench) => expect.poll(() => bench.model.requests.length).toBeGreaterThan(0)

/** Comes to `waiting_for_confirmation` with a message that came during the model call. */
async function askWithUnread(scene: Scene): Promise<Conversation> {
  const conversation = await scene.conversation()
  await conversation.post(userText('go', true))
  await modelCall(scene.bench)
  await conversation.post(userText('and this', true))
  scene.answer()
  await until(conversation, 'StatusUpdate', (event) => event.status === 'waiting_for_confirmation')
  return conversation
}

async function expectRead(scene: Scene): Promise<void> {
  const conversation = await scene.conversation()
  await until(conversation, 'AssistantMessage', (event) => event.text === 'I have read it.')
  await expect.poll(() => conversation.state.status).toBe('idle')
  const { messages } = scene.bench.model.requests.at(-1)!.body
  expectWholeTurns(messages)
  expect(JSON.stringify(messages)).toContain('and this')
}

describe('a message that asked for a run, and arrived during a model call, is answered', () => {
  test.each([false, true])('if the model’s calls are rejected (after a kill: %s)', async (killed) => {
    await using scene = await setScene(ASKS)
    await askWithUnread(scene)
    if (killed) await scene.crash()
    const conversation = await scene.conversation()
    expect(await approvalsOf(conversation).reject('no')).toMatchObject({ status: 'running' })
    await expectRead(scene)
    expect(only(await eventsOf(conversation), 'Result').map((event) => event.stop_reason)).toEqual([
      'rejected',
      'completed',
    ])
  })

  test('when a message that asks for no run takes the place of the decision', async () => {
    await using scene = await setScene(ASKS)
    const conversation = await askWithUnread(scene)
    await conversation.post(userText('never mind'))
    await expectRead(scene)
  })

  test('when its task is cancelled, during the model call or while it waits', async () => {
    for (const waits of [false, true]) {
      await using scene = await setScene(ASKS)
      const conversation = await scene.conversation()
      const message = { role: 'user' as const, content: 'a task' }
      const task = await conversation.tasks.post({ title: 'a task', runnable: { type: 'AgentRun', message } })
      await modelCall(scene.bench)
      await conversation.post(userText('and this', true))
      if (waits) {
        scene.answer()
        await until(conversation, 'StatusUpdate', (event) => event.status === 'waiting_for_confirmation')
      }
      expect(await conversation.tasks.cancel(task.id)).toMatchObject({ status: 'cancelled' })
      await expectRead(scene)
      expect(only(await eventsOf(conversation), 'Result').map((event) => event.stop_reason)).toEqual([
        'cancelled',
        'completed',
      ])
    }
  })
})

test('a reject starts nothing when the model has read every message', async () => {
  await using scene = await setScene(ASKS)
  const conversation = await scene.conversation()
  await conversation.post(userText('go', true))
  scene.answer()
  await until(conversation, 'StatusUpdate', (event) => event.status === 'waiting_for_confirmation')
  expect(await approvalsOf(conversation).reject('no')).toMatchObject({ status: 'idle' })
  expect(only(await eventsOf(conversation), 'AssistantMessage')).toMatchObject([{ read_through: 3 }])
})

test('a tool that finishes after an approval ends the run: the message that began it has been read', async () => {
  await using scene = await setScene({ calls: [call('Act'), call('Finish')] })
  const conversation = await scene.conversation()
  await conversation.post(userText('go', true))
  scene.answer()
  await until(conversation, 'StatusUpdate', (event) => event.status === 'waiting_for_confirmation')
  await approvalsOf(conversation).approve(approvalsOf(conversation).pending().items[0]!.request_id)
  expect(await until(conversation, 'Result')).toMatchObject({ stop_reason: 'finished', final_text: 'bye', steps: 1 })
})
