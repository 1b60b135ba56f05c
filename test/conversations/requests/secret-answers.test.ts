/** Answers that have a secret in them, or something that looks like one. */
import { expect, test } from 'vitest'
import { createAskUserQuestion } from '../../../src/tools/ask-user-question.ts'
import type { Conversation } from '../../../src/conversations/conversation.ts'
import type { ScriptedTurn } from '../../../src/llm/scripted/script.ts'
import { call, eventsOf, setBench, tool, userText } from '../fixtures.ts'
import { askCall } from '../actions.ts'
import { answersIn, approvalsOf, openOf } from '../../support/answering.ts'

const VALUE = 'value-of-a-secret'
const DONE: ScriptedTurn = { text: 'Done.' }
const ACT = tool('Act', () => ({ output: 'acted' }))

const reached = (conversation: Conversation, status: string) =>
  expect.poll(() => conversation.state.status, { interval: 5 }).toBe(status)

test('an answer is the same again also when a part of it has become a secret in between', async () => {
  await using bench = await setBench({ script: [{ calls: [askCall()] }, DONE], tools: [createAskUserQuestion()] })
  const conversation = await bench.converse()
  await conversation.post(userText('go', true))
  await reached(conversation, 'waiting_for_input')
  const [{ request_id } = { request_id: '' }] = openOf(conversation, 'question')
  const answer = (text: string) =>
    conversation.requests.answer(request_id, { kind: 'question', answers: { '0': text } })
  await answer(VALUE)
  await reached(conversation, 'idle')
  await conversation.secrets.put({ TOKEN: VALUE })
  expect(await answer(VALUE)).toMatchObject({ pending: 0 })
  await expect(answer('Something else.')).rejects.toMatchObject({ code: 'already_answered' })
  expect(answersIn(await eventsOf(conversation), 'question')).toHaveLength(1)
})

test('a decision is the same again also when a part of its input has become a secret in between', async () => {
  await using bench = await setBench({ script: [{ calls: [call('Act')] }, DONE], tools: [ACT] })
  const conversation = await bench.converse({ confirmation_mode: true })
  await conversation.post(userText('go', true))
  await reached(conversation, 'waiting_for_confirmation')
  const [asked] = approvalsOf(conversation).pending().items
  const [{ tool_use_id, input_hash } = { tool_use_id: '', input_hash: '' }] = asked!.tool_uses
  const decide = (text: string) =>
    approvalsOf(conversation).decide(asked!.request_id, [
      { tool_use_id, input_hash, behavior: 'allow', updated_input: { text } },
    ])
  await decide(VALUE)
  await reached(conversation, 'idle')
  await conversation.secrets.put({ TOKEN: VALUE })
  expect(await decide(VALUE)).toMatchObject({ pending: 0 })
  await expect(decide('another')).rejects.toMatchObject({ code: 'already_answered' })
})

test('a secret that is a part of the hash of a call prevents no decision about it', async () => {
  await using bench = await setBench({ script: [{ calls: [call('Act')] }, DONE], tools: [ACT] })
  const conversation = await bench.converse({ confirmation_mode: true })
  await conversation.post(userText('go', true))
  await reached(conversation, 'waiting_for_confirmation')
  const [asked] = approvalsOf(conversation).pending().items
  await conversation.secrets.put({ PART: asked!.tool_uses[0]!.input_hash.slice(10, 26) })
  await approvalsOf(conversation).approve(asked!.request_id)
  await reached(conversation, 'idle')
})
