/**
 * Compares the messages that a client sends with those that a conversation has. With each message of this API the log has marks
 * of all that the client had sent until then, so that no text is compared, and nothing of a text can be guessed from a mark.
 */
import { createHash } from 'node:crypto'
import type { Event } from '../../contract/events/event.ts'
import { holds } from '../../contract/events/rewound.ts'
import type { UserPart } from '../../contract/values/message.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import { readPages } from '../../events/read-pages.ts'
import type { HashBody } from '../../security/body-hash.ts'
import type { ChatMessages } from './chat-request.ts'
import { textIn } from './chat-request.ts'
import { TAKEN_BACK, jsonOf, waitingWords } from './chat-words.ts'

/** What stands for a message of the user: `all` with everything before it, `own` alone. One for each key of the server. */
export type MessageMarks = { readonly all: readonly string[]; readonly own: readonly string[] }

/** `before`: of each message of the user that has an answer. `now`: of the one that has none. `answer`: the last one. */
export type ChatMarks = {
  readonly before: readonly MessageMarks[]
  readonly now: MessageMarks
  readonly answer: string
}

/** A message of this API in the log. */
type MarkedMessage = { readonly seq: number; readonly all: string; readonly own: string; readonly unique: string }

const PAGE = 256
const MARKED: ReadonlySet<string> = new Set(['UserMessage', 'MessageWithdrawn'])

/** Keys of clients have no space. */
const FORM = /^chat ([0-9a-f]{32}) ([0-9a-f]{16}) (\S+)$/

/** `unique`: the key of the request, or any other text without a space. */
export function formatMark({ all, own }: MessageMarks, unique: string): string {
  return `chat ${all[0]} ${own[0]} ${unique}`
}

function parseMark(seq: number, key: string | undefined): MarkedMessage | undefined {
  const [, all, own, unique] = FORM.exec(key ?? '') ?? []
  return all === undefined || own === undefined || unique === undefined ? undefined : { seq, all, own, unique }
}

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

const HIDDEN = /<(details|think|reasoning)\b/g

/** Clients show reasoning in the text, and leave it out later. Spaces are lost in many places. */
function comparable(text: string): string {
  let keptText = ''
  let from = 0
  const openTags = new Set<string>()
  for (const { 1: tag = '', index } of text.matchAll(HIDDEN)) {
    if (index < from || openTags.has(tag)) continue
    const end = text.indexOf(`</${tag}>`, index)
    if (end < 0) openTags.add(tag)
    else {
      keptText += text.slice(from, index)
      from = end + tag.length + 3
    }
  }
  return (keptText + text.slice(from)).replaceAll(/\s+/g, '')
}

/**
 * Where the messages of a client belong. `new`: the log has no message. `end`: all before the last one is in it. `earlier`: the client
 * has taken back what came after `toSeq`. `other`: the conversation has another history.
 */
export type HistoryPlace =
  | { readonly kind: 'new' | 'end' | 'other' }
  | { readonly kind: 'earlier'; readonly toSeq: number; readonly isFirst: boolean }

export async function placeOf(conversation: Conversation, { before, now, answer }: ChatMarks): Promise<HistoryPlace> {
  const last = before.at(-1)
  const knownMessages: MarkedMessage[] = []
  for await (const message of markedIn(conversation)) {
    // The newest: nothing else has to be read.
    if (knownMessages.length === 0 && last?.all.includes(message.all))
      return { kind: (await hasAnswer(conversation, message.seq, answer)) ? 'end' : 'other' }
    knownMessages.push(message)
  }
  if (knownMessages.length === 0) {
    const isNew = !(await hasMessage(conversation))
    return { kind: isNew ? 'new' : last ? 'other' : 'end' }
  }
  return await earlierPlace(conversation, knownMessages, { before, now, answer })
}

/** `known`: newest first. */
async function earlierPlace(
  conversation: Conversation,
  knownMessages: readonly MarkedMessage[],
  { before, now, answer }: ChatMarks,
): Promise<HistoryPlace> {
  const last = before.at(-1)
  const at = knownMessages.findIndex(({ all }) => (last ? last.all.includes(all) : now.all.includes(all)))
  const position = knownMessages[at]
  if (position && !last && at === knownMessages.length - 1)
    return { kind: 'earlier', toSeq: position.seq - 1, isFirst: true }
  const next = last && position ? knownMessages[at - 1] : undefined
  if (position && next) {
    if (!(await hasAnswer(conversation, position.seq, answer, next.seq))) return { kind: 'other' }
    return { kind: 'earlier', toSeq: next.seq - 1, isFirst: false }
  }
  // A client that sends the newest messages of a long thread only.
  const [newest] = knownMessages
  const isWindow = before.length > 0 && before.length < knownMessages.length
  const newestFirst = before.toReversed()
  if (newest && isWindow && newestFirst.every(({ own }, back) => own.includes(knownMessages[back]?.own ?? '')))
    return { kind: (await hasAnswer(conversation, newest.seq, answer)) ? 'end' : 'other' }
  return { kind: 'other' }
}

/** Yields the messages of this API that hold, the newest first. */
export async function* markedIn({ log, state }: Conversation): AsyncGenerator<MarkedMessage, void, void> {
  const withdrawn = new Set<number>()
  for await (const { events } of readPages(log, { beforeSeq: log.head + 1, types: MARKED, order: 'desc', limit: PAGE }))
    for (const { event } of events) {
      if (event.type === 'MessageWithdrawn') withdrawn.add(event.message_seq)
      if (event.type !== 'UserMessage' || withdrawn.has(event.seq) || !holds(state.rewound, event)) continue
      const message = parseMark(event.seq, event.idempotency_key)
      if (message) yield message
    }
}

async function hasMessage({ log, state }: Conversation): Promise<boolean> {
  for await (const { events } of readPages(log, { types: new Set(['UserMessage']), limit: PAGE }))
    if (events.some(({ event }) => holds(state.rewound, event))) return true
  return false
}

const ANSWERS: ReadonlySet<string> = new Set(['AssistantMessage', 'Result', 'RequestOpened', 'ModelRetry'])
const WHOLE: ReadonlySet<string> = new Set(['completed', 'finished'])

/**
 * Whether the client shows what the agent has answered to the message `seq`, or its beginning: somebody may have stopped reading.
 * Of an attempt that failed, or a run that was stopped, nobody knows what was shown.
 */
async function hasAnswer({ id, log }: Conversation, seq: number, answer: string, beforeSeq?: number): Promise<boolean> {
  const shownText = answer.split(TAKEN_BACK).at(-1) ?? ''
  const wantedPieces = shownText.split('\n\n').map(comparable)
  if (wantedPieces.every((piece) => piece === '')) return true
  let storedText = ''
  const range = { afterSeq: seq, types: ANSWERS, limit: PAGE, ...(beforeSeq !== undefined && { beforeSeq }) }
  for await (const { events } of readPages(log, range))
    for (const { event } of events) {
      if (event.type === 'ModelRetry' && event.parent_tool_use_id === undefined) return true
      if (event.type === 'Result' && !WHOLE.has(event.stop_reason)) return true
      storedText += comparable(textsOf(event, id).join(''))
    }
  let at = 0
  return wantedPieces.every((piece) => {
    const position = storedText.indexOf(piece, at)
    at = position + piece.length
    return position >= 0
  })
}

/** What an answer can have of an event. */
function textsOf(event: Event, id: string): readonly string[] {
  if (event.type === 'AssistantMessage') return event.parent_tool_use_id === undefined ? [event.text] : []
  if (event.type === 'RequestOpened' && event.kind === 'client_tool') return []
  if (event.type === 'RequestOpened') return [waitingWords(event, id), waitingWords(event, undefined)]
  if (event.type !== 'Result') return []
  const { final_text, structured_output: structuredOutput } = event
  return [final_text, structuredOutput === undefined ? '' : jsonOf(structuredOutput)]
}
