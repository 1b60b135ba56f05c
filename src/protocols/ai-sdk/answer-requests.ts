/** Answers what waits, as the parts of an answer say, and continues the same answer. Nothing is decided because it is not named. */
import type { Access } from '../../access/access.ts'
import { Problem } from '../../contract/problem.ts'
import type { OpenRequest } from '../../contract/request.ts'
import { AnswerRequest } from '../../contract/request.ts'
import { hasForm } from '../../contract/requests/request-forms.ts'
import { AnswerQuestion } from '../../contract/values/question.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import { matchOrThrow } from '../../conversations/requests/match-answers.ts'
import { readPages } from '../../events/read-pages.ts'
import { answerAs } from '../shared/answer-as.ts'
import type { GivenAnswer } from '../shared/answer-as.ts'
import { parseField } from '../shared/fields.ts'
import type { AnswerPlace } from './answer-id.ts'
import { formatApprovalRef, parseAnswerId } from './answer-id.ts'
import { isAtRest } from '../shared/is-at-rest.ts'
import { openTurn } from './turn-marks.ts'
import type { UiAnswers, UiMessage, UiQuestionAnswer } from './ui-request.ts'
import { readUiAnswers } from './ui-request.ts'

/** `start`: seq of the first event of its turn. `shownThrough`: what the client has; it gets what comes after. */
export type BegunAnswer = { readonly start: number; readonly shownThrough: number; readonly isNew: boolean }

const PAGE = 256

/** Throws a `Problem` if nothing of it waits, and nothing has been answered either: a client would send it again and again. */
export async function continueAnswer(
  conversation: Conversation,
  access: Access,
  message: UiMessage,
): Promise<BegunAnswer> {
  const start = await startOf(conversation, message.id)
  const uiAnswers = readUiAnswers(message)
  const answers = conversation.requests.list().flatMap((request) => answersTo(request, uiAnswers))
  const shownThrough = await seenThrough(conversation, start, uiAnswers)
  if (answers.length === 0 && isAtRest(conversation) && shownThrough === conversation.log.head)
    throw new Problem('nothing_pending', 'Nothing of this message waits for an answer. Send a message of the user.')
  await answerAs(conversation, access, answers)
  return { start, shownThrough, isNew: false }
}

/** The answer is sent from its beginning: the last message of the client is another one. */
export async function answerQuestions(
  conversation: Conversation,
  access: Access,
  questionAnswers: readonly UiQuestionAnswer[],
): Promise<BegunAnswer> {
  const start = await openTurn(conversation)
  const open = conversation.requests.list()
  const answers = questionAnswers.flatMap(({ requestId, answers: values }): GivenAnswer[] => {
    const request = open.find(({ request_id: id }) => id === requestId)
    if (!request || !hasForm(request, 'questions')) return []
    const answer = parseField(AnswerQuestion, { answers: values })
    // None is stored if another one is wrong.
    matchOrThrow(request.payload.questions, answer.answers)
    return [{ requestId, answer: { kind: request.kind, ...answer } }]
  })
  if (start === undefined || answers.length === 0)
    throw new Problem('nothing_pending', 'This question does not wait for an answer any more.')
  await answerAs(conversation, access, answers)
  return { start, shownThrough: 0, isNew: false }
}

/** Messages of another store have other ids. What another chat was asked is not asked in this one, though its calls have the same ids. */
async function startOf(conversation: Conversation, id: string): Promise<number> {
  const place = parseAnswerId(id)
  const start = place ? placeIn(conversation, place) : await openTurn(conversation)
  const { log } = conversation
  const { events } = await log.read({ afterSeq: (start ?? log.head + 1) - 1, beforeSeq: (start ?? 0) + 1, limit: 1 })
  const type = events[0]?.type
  if (start !== undefined && (type === 'UserMessage' || type === 'StatusUpdate')) return start
  throw new Problem('nothing_pending', 'The conversation does not have this answer. Load its messages again.')
}

const placeIn = ({ id }: Conversation, { conversationId, start }: AnswerPlace): number | undefined =>
  conversationId === id ? start : undefined

function answersTo(request: OpenRequest, { approvals, outputs }: UiAnswers): readonly GivenAnswer[] {
  const { request_id: requestId } = request
  if (request.kind === 'client_tool') {
    const sentOutput = outputs.find(({ toolCallId }) => request.tool_use_ids.includes(toolCallId))
    if (!sentOutput) return []
    const { output, isError } = sentOutput
    return [{ requestId, answer: parseField(AnswerRequest, { kind: 'client_tool', output, is_error: isError }) }]
  }
  if (request.kind !== 'permission') return []
  const decisions = request.payload.tool_uses.flatMap(({ tool_use_id, input_hash, decision }) => {
    const approval = approvals.find(({ id }) => id === formatApprovalRef(requestId, tool_use_id))
    if (decision !== undefined || !approval) return []
    const message = approval.approved ? undefined : approval.reason?.slice(0, MAX_REASON_CHARS)
    const behavior = approval.approved ? ('allow' as const) : ('deny' as const)
    return [{ tool_use_id, input_hash, behavior, ...(message !== undefined && { message }) }]
  })
  if (decisions.length === 0) return []
  return [{ requestId, answer: parseField(AnswerRequest, { kind: 'permission', decisions }) }]
}

const MAX_REASON_CHARS = 10_000

const REQUEST_PARTS: ReadonlySet<string> = new Set(['RequestOpened', 'RequestAnswered', 'RequestClosed'])

/**
 * Returns the seq of the last event that the client has: its stream has ended where the newest request that it answers waited.
 * Somebody else may have answered that one since.
 */
async function seenThrough({ log }: Conversation, start: number, { approvals, outputs }: UiAnswers): Promise<number> {
  const head = log.head
  const ids = new Set(approvals.map(({ id }) => id))
  const calls = new Set(outputs.map(({ toolCallId }) => toolCallId))
  let isAsked = false
  let answeredSeq: number | undefined
  for await (const { events } of readPages(log, { afterSeq: start - 1, types: REQUEST_PARTS, limit: PAGE }))
    for (const { event, seq } of events) {
      if (event.type !== 'RequestOpened') {
        if (isAsked) answeredSeq ??= seq
        continue
      }
      const refs = event.tool_use_ids.map((id) => formatApprovalRef(event.request_id, id))
      if (!refs.some((ref) => ids.has(ref)) && !event.tool_use_ids.some((id) => calls.has(id))) continue
      isAsked = true
      answeredSeq = undefined
    }
  return answeredSeq === undefined ? head : answeredSeq - 1
}
