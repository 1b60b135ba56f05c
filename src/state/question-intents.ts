/**
 * Decides the events of intents about questions to the user. Pure. It knows no tool: whatever call asks, the answer is
 * stored together with the result of the call.
 */
import type { ToolCall } from './tool-call.ts'
import type { EventDraft } from '../contract/events/event.ts'
import type { Answers, AskedQuestion } from '../contract/events/questions.ts'
import { Problem } from '../contract/problem.ts'
import { inRun, inSubagent, toStatus } from './drafts.ts'
import type { State } from './state.ts'
import { callerOf } from './subagents.ts'
import type { OpenQuestion } from './open-questions.ts'
import { questionView } from './open-questions.ts'

/** A call whose result is the answer of the user. */
export type AskingCall = { readonly toolUseId: string; readonly questions: readonly AskedQuestion[] }

/** The loop has reached calls that ask the user, and has stopped. */
export type AskUserIntent = {
  kind: 'ask_user'
  runId: string
  asking: readonly (AskingCall & { readonly questionId: string })[]
}
/** `answers` fit the question. `begun` are the ids of the open calls whose tool writes the result. */
export type AnswerIntent = { kind: 'answer'; questionId: string; answers: Answers; begun: readonly string[] }

/** All calls of a turn that ask do so at once, before any call of the turn runs. */
export function decideAskUser(state: State, { runId, asking }: AskUserIntent): EventDraft[] {
  if (state.status !== 'running' || state.run?.id !== runId) return []
  const asked = asking.map(({ questionId, ...call }) => userQuestion(questionId, call, runId))
  return [...asked, toStatus(state, 'waiting_for_input', 'user_question')]
}

export function userQuestion(
  question_id: string,
  { toolUseId, questions }: AskingCall,
  run_id: string | undefined,
): EventDraft {
  const what = { question_id, tool_use_id: toolUseId, questions: [...questions] }
  return { type: 'UserQuestion', source: 'environment', ...(run_id !== undefined && { run_id }), ...what }
}

/**
 * A tool that asks while it runs gets the answer, and writes the result itself. Otherwise the answer is the result, and the
 * run continues after the last one. One batch: after a crash the log has the answer and the result, or neither.
 */
export function decideAnswer(state: State, { questionId, answers, begun }: AnswerIntent): EventDraft[] | Problem {
  const question = state.questions.find(({ id }) => id === questionId)
  const caller = question && callerOf(state, question.toolUseId)
  const { openCalls, run } = caller?.agent ?? state
  const call = openCalls.find(({ toolUseId }) => toolUseId === question?.toolUseId)
  if (!question || !call) return questionNotFound()
  const isLast = state.questions.length === 1
  const answer: EventDraft = {
    type: 'UserAnswer',
    source: 'user',
    ...inRun({ run }),
    question_id: questionId,
    answers,
  }
  // A subagent asks only while its tool runs.
  if (caller) return inSubagent([answer], caller)
  if (begun.includes(call.toolUseId)) return [answer]
  return [
    answer,
    answered(call, question, answers),
    ...(isLast && state.status === 'waiting_for_input' ? [toStatus(state, 'running', 'answered')] : []),
  ]
}

/** True if a call that has not begun waits for an answer. */
export const isAskedBefore = ({ holdsCalls, questions }: State) => holdsCalls && questions.length > 0

/** What a message does to a question. */
export const UNANSWERED = 'superseded: the user wrote a message instead of answering the question'

export function refuseRunWhileAsking({ questions }: State): Problem {
  return new Problem('waiting_for_input', 'The agent has asked a question; answer it, or send a message.', {
    details: { pending: questions.map(questionView) },
  })
}

export const questionNotFound = () =>
  new Problem('question_not_found', 'There is no question with this id; GET questions lists those that wait.')

function answered(
  { toolUseId, runId, isChanged, input }: ToolCall,
  question: OpenQuestion,
  answers: Answers,
): EventDraft {
  return {
    type: 'ToolResult',
    source: 'environment',
    ...(runId !== undefined && { run_id: runId }),
    tool_use_id: toolUseId,
    ...(isChanged && { ran_input: input }),
    output: tellAnswers(question, answers),
    is_error: false,
    duration_ms: 0,
  }
}

/** In the words that models know. Texts are quoted as JSON, so that none can pass for another question or answer. */
function tellAnswers({ questions }: OpenQuestion, answers: Answers): string {
  const pairs = questions.map(({ question }) => {
    const own = Object.hasOwn(answers, question) ? answers[question] : undefined
    return `${JSON.stringify(question)}=${own ? JSON.stringify(own.join(', ')) : '(not answered)'}`
  })
  return `User has answered your questions: ${pairs.join(', ')}. You can now continue with the user's answers in mind.`
}
