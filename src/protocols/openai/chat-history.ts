/**
 * Compares the messages that a client sends with those that a conversation has. With each message of this API the log has marks
 * of all that the client had sent until then, so that no text is compared, and nothing of a text can be guessed from a mark.
 */
import { createHash } from 'node:crypto'
import type { EventOf } from '../../contract/events/event.ts'
import type { UserPart } from '../../contract/values/message.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import type { HashBody } from '../../security/body-hash.ts'
import { uuid7 } from '../../lib/uuid7.ts'
import { comparable, showsAnswer } from './chat-answer.ts'
import type { ChatMessages } from './chat-request.ts'
import { textIn } from '../shared/earlier-messages.ts'
import { userMessages } from '../shared/user-messages.ts'

/** What stands for a message of the user: `all` with everything before it, `own` alone. One for each key of the server. */
export type MessageMarks = { readonly all: readonly string[]; readonly own: readonly string[] }

/** `before`: of each message of the user that has an answer. `now`: of the one that has none. `answer`: the last one. */
export type ChatMarks = {
  readonly before: readonly MessageMarks[]
  readonly now: MessageMarks
  readonly answer: string
}

/** A message of this API in the log. */
type MarkedMessage = { readonly seq: number; readonly all: string; readonly own: string }

/** Keys of clients have no space. */
const FORM = /^chat ([0-9a-f]{32}) ([0-9a-f]{16}) \S+(?: (\S+))?$/

/** Each is another one. `key`: that of the request. */
export function formatMark({ all, own }: MessageMarks, key: string | undefined): string {
  return ['chat', all[0], own[0], uuid7(), ...(key === undefined ? [] : [key])].join(' ')
}

function parseMark({ seq, idempotency_key: mark }: EventOf<'UserMessage'>): MarkedMessage | undefined {
  const [, all, own] = FORM.exec(mark ?? '') ?? []
  return all === undefined || own === undefined ? undefined : { seq, all, own }
}

/** Returns the `Idempotency-Key` of a request of this API. */
export const keyInMark = (mark: string): string | undefined => FORM.exec(mark)?.[3]

export function marksOf(
  { before, newParts }: Pick<ChatMessages, 'before' | 'newParts'>,
  hashBody: HashBody,
): ChatMarks {
  const marks: MessageMarks[] = []
  let answer = ''
  let askedParts: UserPart[] = []
  const add = (parts: readonly UserPart[]) => {
    const last = marks.at(-1)?.all
    const [one, two] = [hashesOf(hashBody, comparable(answer)), hashesOf(hashBody, parts)]
    const all = two.map((own, at) => digest(`${last?.[at] ?? ''} ${one[at]} ${own}`, 32))
    return { all, own: two.map((own) => digest(own, 16)) }
  }
  for (const { role, parts } of before) {
    if (role === 'user') askedParts.push(...parts)
    if (role !== 'assistant') continue
    if (askedParts.length > 0) {
      marks.push(add(askedParts))
      answer = ''
    }
    askedParts = []
    answer += `\n\n${parts.map(textIn).join('')}`
  }
  return { before: marks, now: add(newParts), answer }
}

function hashesOf(hashBody: HashBody, value: unknown): readonly string[] {
  const { bodyHash, formerHashes } = hashBody('chat', value)
  return [bodyHash, ...formerHashes]
}

const digest = (text: string, length: number): string =>
  createHash('sha256').update(text).digest('hex').slice(0, length)

/**
 * Says where the messages of a client belong. `new`: the log has no message. `end`: all before the last one is in it. `earlier`: the client
 * has taken back what came after `toSeq`. `other`: the conversation has another history.
 */
export type HistoryPlace =
  | { readonly kind: 'new' | 'end' | 'other' }
  | { readonly kind: 'earlier'; readonly toSeq: number; readonly isFirst: boolean }

/** The others of a longer thread are not compared. */
const MAX_COMPARED_MESSAGES = 1000

/** Keeps one page of the log at a time. */
export async function placeOf(conversation: Conversation, marks: ChatMarks): Promise<HistoryPlace> {
  const { before, now, answer } = marks
  const last = before.at(-1)
  const shows = async (seq: number, next?: MarkedMessage) =>
    await showsAnswer(conversation, { seq, beforeSeq: next?.seq ?? conversation.log.head + 1 }, answer)
  let newest: MarkedMessage | undefined
  let oldest: MarkedMessage | undefined
  let markedCount = 0
  let count = 0
  // A client can send the newest messages of a long thread only.
  let isWindow = last !== undefined
  for await (const event of userMessages(conversation)) {
    if (count++ === MAX_COMPARED_MESSAGES) break
    const message = parseMark(event)
    if (!message) continue
    if (last?.all.includes(message.all)) {
      if (!(await shows(message.seq, oldest))) return { kind: 'other' }
      return oldest ? { kind: 'earlier', toSeq: oldest.seq - 1, isFirst: false } : { kind: 'end' }
    }
    const own = before.at(-1 - markedCount++)?.own
    isWindow &&= own === undefined || own.includes(message.own)
    newest ??= message
    oldest = message
  }
  if (!newest || !oldest) return { kind: count === 0 ? 'new' : last ? 'other' : 'end' }
  if (!last && count <= MAX_COMPARED_MESSAGES && now.all.includes(oldest.all))
    return { kind: 'earlier', toSeq: oldest.seq - 1, isFirst: true }
  return { kind: isWindow && before.length < markedCount && (await shows(newest.seq)) ? 'end' : 'other' }
}

/** Returns the newest message of this API that holds; undefined if it is too old to be compared. */
export async function newestMarked(conversation: Conversation): Promise<MarkedMessage | undefined> {
  let count = 0
  for await (const event of userMessages(conversation)) {
    const message = parseMark(event)
    if (message) return message
    if (++count === MAX_COMPARED_MESSAGES) return undefined
  }
  return undefined
}

/** False if another client has said something since. */
export async function newestIsMarked(conversation: Conversation): Promise<boolean> {
  for await (const event of userMessages(conversation)) return parseMark(event) !== undefined
  return true
}
