/**
 * Decides the events of intents about questions to the user. Pure. It knows no tool: whatever call asks, the answer is
 * stored together with the result of the call.
 */
import type { ToolCall } from './tool-call.ts'
import type { EventDraft } from '../contract/events/event.ts'
import type { Answers, AskedQuestion } from '../contract/values/question.ts'
import { Problem } from '../contract/problem.ts'
import { inRun, toStatus } from './drafts.ts'
import type { State } from './state.ts'
import type { OpenQuestion } from './open-requests.ts'
import { questionsOf } from './open-requests.ts'
import { byKey } from './request-drafts.ts'
import { requestNotFound } from './request-problems.ts'

/** A call whose result is the answer of the user. */
export type QuestionCall = { readonly toolUseId: string; readonly questions: readonly AskedQuestion[] }

/** The loop has reached calls that ask the user, and has stopped. */
export type RequestAnswersIntent = {
  kind: 'request_answers'
  runId: string
  calls: readonly (QuestionCall & { readonly questionId: string })[]
}
/** `answers` fit the question. */
export type AnswerIntent = {
  kind: 'answer'
  questionId: string
  answers: Answers
  /** The name of the API key of the client. */
  keyName?: string | undefined
}

/** All calls of a turn that ask do so at once, before any call of the turn runs. */
export function decideQuestions(state: State, { runId, calls }: RequestAnswersIntent): EventDraft[] {
  if (state.status !== 'running' || state.run?.id !== runId) return []
  const openings = calls.map(({ questionId, ...call }) => userQuestion(questionId, call, runId))
  return [...openings, toStatus(state, 'waiting_for_input', 'user_question')]
}

function userQuestion(
  request_id: string,
  { toolUseId, questions }: QuestionCall,
  run_id: string | undefined,
): EventDraft {
  return {
    type: 'RequestOpened',
    source: 'environment',
    ...(run_id !== undefined && { run_id }),
    kind: 'question',
    request_id,
    tool_use_ids: [toolUseId],
    payload: { questions: [...questions] },
  }
}

/**
 * The answer is the result, and the run continues after the last one. One batch: after a crash the log has the answer and
 * the result, or neither.
 */
export function decideAnswer(state: State, { questionId, answers, keyName }: AnswerIntent): EventDraft[] | Problem {
  const questions = questionsOf(state)
  const question = questions.find(({ request_id }) => request_id === questionId)
  const call = state.openCalls.find(({ toolUseId }) => question?.tool_use_ids.includes(toolUseId))
  if (!question || !call) return requestNotFound()
  const isLast = questions.length === 1
  const answer: EventDraft = {
    type: 'RequestAnswered',
    source: 'user',
    ...inRun(state),
    kind: 'question',
    request_id: questionId,
    tool_use_ids: question.tool_use_ids,
    answer: { answers },
    ...byKey(keyName),
  }
  return [
    answer,
    answerResult(call, question, answers),
    ...(isLast && state.status === 'waiting_for_input' ? [toStatus(state, 'running', 'answered')] : []),
  ]
}

/** True if a call that has not begun waits for an answer. */
export const hasQuestionBefore = (state: State) => state.holdsCalls && questionsOf(state).length > 0

/** What a message does to a question. */
export const UNANSWERED = 'superseded: the user wrote a message instead of answering the question'

export function refuseRunDuringQuestions(state: State): Problem {
  return new Problem('waiting_for_input', 'The agent has asked a question; answer it, or send a message.', {
    details: { pending: questionsOf(state) },
  })
}

function answerResult(
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

/** Uses the words that models know. Texts are quoted as JSON, so that none can pass for another question or answer. */
function tellAnswers({ payload: { questions } }: OpenQuestion, answers: Answers): string {
  const pairs = questions.map(({ question }) => {
    const own = Object.hasOwn(answers, question) ? answers[question] : undefined
    return `${JSON.stringify(question)}=${own ? JSON.stringify(own.join(', ')) : '(not answered)'}`
  })
  return `User has answered your questions: ${pairs.join(', ')}. You can now continue with the user's answers in mind.`
}
