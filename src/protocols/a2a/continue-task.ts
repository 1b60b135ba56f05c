/** Continues a task with the words of a client, or with its answers to what waits. What waits for a decision gets none by a text. */
import { z } from 'zod'
import type { Access } from '../../access/access.ts'
import type { AnswerRequest, OpenRequest } from '../../contract/request.ts'
import type { PostedMessage } from '../../contract/run.ts'
import { UserInput } from '../../contract/values/message.ts'
import type { UserPart } from '../../contract/values/message.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import { findEarlier } from '../../state/idempotency.ts'
import type { ClientMessage, Idempotency } from '../../state/idempotency.ts'
import { answerAs, mayAnswer } from '../shared/answer-as.ts'
import type { GivenAnswer } from '../shared/answer-as.ts'
import { ensureRun } from '../shared/ensure-run.ts'
import { invalid, parseField } from '../shared/fields.ts'
import { A2aError } from './a2a-error.ts'
import type { SaidParts } from './message-request.ts'
import { isNewest, readTask } from './tasks.ts'
import type { FoundTask } from './tasks.ts'

type SaidMessage = SaidParts & { readonly mark: Idempotency & ClientMessage }

export async function continueTask(task: FoundTask, access: Access, message: SaidMessage): Promise<FoundTask> {
  const { conversation } = task
  const { content, answers, mark } = message
  if (content.length + answers.length === 0) throw invalid('message.parts', 'must say something')
  const earlier = findEarlier(conversation.state.postedKeys, mark, Date.now())
  if (earlier) return await repeat(task, access, earlier.answer, content)
  const { projection } = await readTask(task)
  const others = answers.filter(({ requestId }) => !projection.hasAsked(requestId))
  if (others.length > 0 && !(areOpen(conversation, others) && (await isNewest(task))))
    throw invalid('message.parts', 'has a request_id that the task has not asked about')
  if (answers.length > 0) return await answerAll(task, access, message)
  if (projection.isOver)
    throw new A2aError('UNSUPPORTED_OPERATION', 'The task has ended. Send the message with its contextId alone.')
  const reply = replyIn(content)
  const question = questionIn(conversation)
  if (reply && question !== undefined) {
    const answers = [{ requestId: question, answer: reply }]
    mayAnswer(access, answers)
    conversation.requests.check(question, reply)
    // The answer has no place for the messageId: another question must not get it when the message is sent again.
    await conversation.clientEvents.post({ name: REPLY, data: { request_id: question } }, mark)
    await answerAs(conversation, access, answers)
    return task
  }
  refuseWords(conversation)
  const request = { message: messageOf(content), run: true }
  return taskOfMessage(task, await conversation.post(request, mark, { clientMessage: mark }))
}

function areOpen({ requests }: Conversation, answers: readonly GivenAnswer[]): boolean {
  const openIds = new Set(requests.list().map(({ request_id: id }) => id))
  return answers.every(({ requestId }) => openIds.has(requestId))
}

const REPLY = 'a2a_reply'
const ReplyData = z.object({ request_id: z.string() })

/** The server can have stopped between the two steps of a reply. */
async function repeat(
  task: FoundTask,
  access: Access,
  postedMessage: PostedMessage,
  content: readonly UserPart[],
): Promise<FoundTask> {
  const { log } = task.conversation
  const { events } = await log.read({ afterSeq: postedMessage.seq - 1, beforeSeq: postedMessage.seq + 1, limit: 1 })
  const event = events[0]?.event
  if (event?.type !== 'ClientEvent') return taskOfMessage(task, postedMessage)
  const reply = replyIn(content)
  if (!reply) return task
  const { request_id: requestId } = ReplyData.parse(event.data)
  await answerAs(task.conversation, access, [{ requestId, answer: reply }])
  return task
}

/** The run can have ended meanwhile: then the message has begun another task. */
function taskOfMessage(task: FoundTask, { seq, run_id: runId }: PostedMessage): FoundTask {
  return runId === task.runId ? task : { conversation: task.conversation, start: seq, runId }
}

const messageOf = (content: readonly UserPart[]): UserInput =>
  parseField(UserInput, { role: 'user', content }, 'message', 'parts')

function replyIn([first, ...others]: readonly UserPart[]): AnswerRequest | undefined {
  if (first?.type !== 'text' || others.length > 0) return undefined
  return { kind: 'question', answers: { '0': first.text } }
}

/** The id of the only request that waits, if it is one question. */
function questionIn({ requests }: Conversation): string | undefined {
  const [request, ...others] = requests.list()
  const isQuestion = request?.kind === 'question' && request.payload.questions.length === 1
  return isQuestion && others.length === 0 ? request.request_id : undefined
}

/** A message would end what waits. */
function refuseWords({ state, requests }: Conversation): void {
  const [first] = requests.list()
  if (state.status === 'running' || !first) return
  const message = `The task waits for an answer. Send a data part with the request_id ${first.request_id} and the kind ${first.kind}: a text decides nothing.`
  throw invalid('message.parts', message)
}

/** The first answer counts; the same one again changes nothing. All that can be refused is refused before anything changes. */
async function answerAll(task: FoundTask, access: Access, { answers, content, mark }: SaidMessage): Promise<FoundTask> {
  const { conversation } = task
  const { requests } = conversation
  mayAnswer(access, answers)
  if (content.length > 0) refuseHalf(requests.list(), answers)
  const message = content.length > 0 ? messageOf(content) : undefined
  for (const { requestId, answer } of answers) requests.check(requestId, answer)
  const isFirst = answers.some((answer) => areOpen(conversation, [answer]))
  await answerAs(conversation, access, answers)
  if (message)
    return taskOfMessage(task, await conversation.post({ message, run: true }, mark, { clientMessage: mark }))
  // An agent that somebody has stopped since does not continue because an answer is sent again.
  if (isFirst && conversation.state.status === 'paused') await ensureRun(conversation, {})
  return task
}

/** Words would end what still waits. */
function refuseHalf(open: readonly OpenRequest[], answers: readonly GivenAnswer[]): void {
  const isAnswered = (request: OpenRequest) => {
    const answer = answers.find(({ requestId }) => requestId === request.request_id)?.answer
    if (answer?.kind !== 'permission' || request.kind !== 'permission') return answer !== undefined
    const decidedIds = new Set(answer.decisions.map(({ tool_use_id: id }) => id))
    return request.payload.tool_uses.every(
      ({ tool_use_id: id, decision }) => decision !== undefined || decidedIds.has(id),
    )
  }
  if (!open.every(isAnswered)) throw invalid('message.parts', 'must answer all that waits, or say nothing else')
}
