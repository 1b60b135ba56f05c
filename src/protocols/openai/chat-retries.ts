/** Finds the turn that a request has begun before: clients of OpenAI repeat requests whose answer was lost. */
import type { Conversation } from '../../conversations/conversation.ts'
import { readPages } from '../../events/read-pages.ts'
import { Problem } from '../../contract/problem.ts'
import { KEY_LIFETIME_MS } from '../../state/idempotency.ts'
import type { ChatMarks } from './chat-history.ts'
import { markedIn } from './chat-history.ts'
import { parseCallId } from './chat-builder.ts'
import type { ChatAsk } from './chat-ask.ts'

const PAGE = 256

/** Returns the seq of the first event of the turn; undefined if the request is a new one. Throws a `Problem` for a key that was used for another one. */
export async function earlierTurnOf(
  conversation: Conversation,
  ask: ChatAsk,
  { now }: ChatMarks,
): Promise<number | undefined> {
  const { key, isRepeated, messages } = ask
  if (key !== undefined) {
    const postedKey = conversation.state.postedKeys.findLast(
      (entry) => entry.key.startsWith('chat ') && entry.key.endsWith(` ${key}`),
    )
    const isCurrent = postedKey && Date.now() - Date.parse(postedKey.at) < KEY_LIFETIME_MS
    if (isCurrent) {
      const { bodyHash, formerHashes } = ask.hashBody('chat request', ask.body)
      if ([bodyHash, ...formerHashes].includes(postedKey.bodyHash)) return postedKey.answer.seq
      throw new Problem(
        'idempotency_mismatch',
        'This Idempotency-Key was used with another body before; use a new key.',
      )
    }
  }
  if (!isRepeated) return undefined
  if (messages.outputs.length > 0) return await answeredAt(conversation, messages)
  for await (const { all, seq } of markedIn(conversation)) return now.all.includes(all) ? seq : undefined
  return undefined
}

const ANSWERED: ReadonlySet<string> = new Set(['RequestAnswered'])

/** Where all results of the request were stored. */
async function answeredAt({ log }: Conversation, { outputs }: ChatAsk['messages']): Promise<number | undefined> {
  const calls = new Set(outputs.map(({ callId }) => parseCallId(callId)?.toolUseId))
  let first: number | undefined
  for await (const { events } of readPages(log, {
    beforeSeq: log.head + 1,
    types: ANSWERED,
    order: 'desc',
    limit: PAGE,
  }))
    for (const { event, seq } of events) {
      if (event.type !== 'RequestAnswered' || event.kind !== 'client_tool') continue
      if (event.tool_use_ids.some((call) => calls.delete(call))) first = seq
      if (calls.size === 0) return first
    }
  return undefined
}
