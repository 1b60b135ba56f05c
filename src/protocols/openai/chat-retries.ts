/** Finds what a request has said before: clients of OpenAI repeat requests whose answer was lost. */
import type { Access } from '../../access/access.ts'
import type { EventOf } from '../../contract/events/event.ts'
import type { Problem } from '../../contract/problem.ts'
import { AnswerRequest } from '../../contract/request.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import { readPages } from '../../events/read-pages.ts'
import type { PostedKey } from '../../state/idempotency.ts'
import type { ChatMarks } from './chat-history.ts'
import { keyInMark, newestMarked } from './chat-history.ts'
import { parseCallId } from './call-id.ts'
import { earlierPost } from './earlier-post.ts'
import type { ChatPost } from './chat-post.ts'
import { answerAs } from '../shared/answer-as.ts'
import type { GivenAnswer } from '../shared/answer-as.ts'
import { invalid, parseField } from '../shared/fields.ts'
import { OpenAiError } from './openai-error.ts'
import type { CallOutput } from './response-request.ts'

const PAGE = 64

/** Returns the seq of the message that the request has posted; undefined if it has posted none that holds. Throws a `Problem` for a key of another request. */
export async function earlierMessageOf(
  conversation: Conversation,
  { key, isRepeated, body, hashBody, messages }: ChatPost,
  { now }: ChatMarks,
): Promise<number | undefined> {
  if (messages.newParts.length === 0) return undefined
  const isMeant = ({ key: mark }: PostedKey) => keyInMark(mark) === key
  const hash = hashBody('chat request', body)
  const seq = key === undefined ? undefined : await earlierPost(conversation, isMeant, hash)
  if (seq !== undefined || !isRepeated) return seq
  const newest = await newestMarked(conversation)
  return newest && now.all.includes(newest.all) ? newest.seq : undefined
}

/** `answers`: of the calls that wait. `since`: the seq of the first result that is stored; undefined if none is. */
export type Results = { readonly answers: readonly GivenAnswer[]; readonly since: number | undefined }

/**
 * Each function that waits needs a result. One that has the same result already needs no other, if nothing was said after it but
 * `message`, the message of the same request. Throws an `OpenAiError`, and a `Problem` for another result.
 */
export async function resultsOf(
  conversation: Conversation,
  access: Access,
  outputs: readonly CallOutput[],
  message: number | undefined,
): Promise<Results> {
  const open = conversation.requests.list().filter(({ kind }) => kind === 'client_tool')
  const openIds = new Set(open.flatMap(({ tool_use_ids }) => tool_use_ids))
  const answerById = new Map<string, AnswerRequest>()
  for (const { callId, output } of outputs) {
    const id = toolUseOf(conversation, callId)
    if (id === undefined || answerById.has(id)) throw notWaiting(callId)
    answerById.set(id, parseField(AnswerRequest, { kind: 'client_tool', output }))
  }
  const closedOutputs = outputs.filter(({ callId }) => !openIds.has(toolUseOf(conversation, callId) ?? ''))
  const resultById =
    closedOutputs.length > 0 ? await storedResults(conversation, message) : new Map<string, StoredResult>()
  const seqs: number[] = []
  for (const { callId } of closedOutputs) {
    const id = toolUseOf(conversation, callId) ?? ''
    const result = resultById.get(id)
    const answer = answerById.get(id)
    if (!result || !answer) throw notWaiting(callId)
    // Throws if it is another one.
    await answerAs(conversation, access, [{ requestId: result.request_id, answer }])
    seqs.push(result.seq)
  }
  const since = seqs.length > 0 ? Math.min(...seqs) : undefined
  // The agent continues with these, and may have called the next function already.
  if (since !== undefined && seqs.length === outputs.length) return { answers: [], since }
  const answers = open.map(({ request_id: requestId, tool_use_ids: [id = ''] }): GivenAnswer => {
    const answer = answerById.get(id)
    if (answer) return { requestId, answer }
    throw missingResult(id)
  })
  return { answers, since }
}

type StoredResult = Pick<EventOf<'RequestAnswered'>, 'seq' | 'request_id'>

const SAID: ReadonlySet<string> = new Set(['RequestAnswered', 'UserMessage'])

/** The results after the newest message, by the ids of their calls. */
async function storedResults({ log }: Conversation, message: number | undefined): Promise<Map<string, StoredResult>> {
  const results = new Map<string, StoredResult>()
  for await (const { events } of readPages(log, { beforeSeq: log.head + 1, types: SAID, order: 'desc', limit: PAGE }))
    for (const { event } of events) {
      if (event.type === 'UserMessage' && event.seq !== message) return results
      if (event.type !== 'RequestAnswered' || event.kind !== 'client_tool') continue
      for (const id of event.tool_use_ids) results.set(id, { seq: event.seq, request_id: event.request_id })
    }
  return results
}

/** Undefined for a call of another conversation. */
export function toolUseOf({ id }: Pick<Conversation, 'id'>, callId: string): string | undefined {
  const call = parseCallId(callId)
  return call?.conversationId === id ? call.toolUseId : undefined
}

export const notWaiting = (callId: string): Problem =>
  invalid('tool_call_id', `${callId.slice(0, 200)} does not wait for a result`)

export const missingResult = (toolUseId = ''): OpenAiError =>
  new OpenAiError(400, `A message of the role tool is missing for the call that ends with ${toolUseId}.`, {
    param: 'messages',
  })
