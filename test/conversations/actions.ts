/** What clients do with a conversation, in any order: for tests that try it at random. */
import * as fc from 'fast-check'
import type { Conversation } from '../../src/conversations/conversation.ts'
import { uuid7 } from '../../src/lib/uuid7.ts'
import { userText } from './fixtures.ts'
import { approvalsOf, questionsOf } from '../support/answering.ts'
import { takeTime } from '../support/take-time.ts'

export type Action =
  | { kind: 'say'; run: boolean }
  | { kind: 'pause'; interrupt: boolean }
  | { kind: 'mode'; on: boolean }
  | { kind: 'wait'; ms: number }
  | { kind: 'decide'; use: number; allow: boolean }
  | { kind: 'answer'; question: number }
  | { kind: 'run' | 'reject' | 'approve' | 'task' | 'cancel' }

/** Each with how often it is chosen. */
export const ACTIONS: { weight: number; arbitrary: fc.Arbitrary<Action> }[] = [
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('say' as const), run: fc.boolean() }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('pause' as const), interrupt: fc.boolean() }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('mode' as const), on: fc.boolean() }) },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.nat(12) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('decide' as const), use: fc.nat(2), allow: fc.boolean() }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('answer' as const), question: fc.nat(2) }) },
  { weight: 8, arbitrary: fc.record({ kind: fc.constantFrom('run', 'run', 'approve', 'approve') }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('reject', 'task', 'cancel') }) },
]

/** Throws the `Problem` it is refused with. */
export async function carryOut(conversation: Conversation, action: Action): Promise<unknown> {
  const { tasks } = conversation
  const [approvals, questions] = [approvalsOf(conversation), questionsOf(conversation)]
  const [request] = approvals.pending().items
  switch (action.kind) {
    case 'say':
      return await conversation.post(userText('do not', action.run))
    case 'pause':
      return await conversation.pause({ interrupt: action.interrupt })
    case 'mode':
      return await conversation.setConfirmation(action.on)
    case 'wait':
      return await takeTime(action.ms)
    case 'run':
      return await conversation.run()
    case 'approve':
      return await approvals.approve(request?.request_id ?? uuid7())
    case 'reject':
      return await approvals.reject('no')
    case 'task':
      return await tasks.post({
        title: 'more',
        runnable: { type: 'AgentRun', message: { role: 'user', content: 'a task' } },
      })
    case 'cancel':
      return await tasks.cancel(conversation.state.tasks[0]?.id ?? uuid7())
    case 'answer': {
      const { items } = questions.pending()
      const question = items[action.question % Math.max(items.length, 1)]
      return question && (await questions.answer(question.question_id, { '0': 'Yes' }))
    }
    case 'decide': {
      const use = request?.tool_uses[action.use % request.tool_uses.length]
      if (!request || !use) return undefined
      const { tool_use_id, input_hash } = use
      const behavior = action.allow ? 'allow' : 'deny'
      return await approvals.decide(request.request_id, [{ tool_use_id, input_hash, behavior }])
    }
  }
}

const OPTIONS = ['Yes', 'No'].map((label) => ({ label, description: '' }))

/** A call of `AskUserQuestion`. */
export const askCall = (question = 'Go on?') => ({
  name: 'AskUserQuestion',
  arguments: { questions: [{ question, header: 'Go on', options: OPTIONS }] },
})
