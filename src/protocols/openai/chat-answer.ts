/** Compares the answer that a client sends with the one that the log has. */
import { holds } from '../../contract/events/rewound.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import { readPages } from '../../events/read-pages.ts'
import { readTurn } from '../items/follow-turn.ts'
import type { TurnStep } from '../items/follow-turn.ts'
import { ChatBuilder } from './chat-builder.ts'

/** The events between a message and the next one. */
type AnswerRange = { readonly seq: number; readonly beforeSeq: number }

/**
 * True if the client shows what the agent has answered to the message `seq`, or its beginning: somebody may have stopped reading.
 * What was shown of an attempt that failed, or of a run that was stopped, is not stored: after that, any text is accepted.
 */
export async function showsAnswer(conversation: Conversation, range: AnswerRange, answer: string): Promise<boolean> {
  const text = comparable(answer)
  if (text === '') return true
  return (await isBeginning(conversation, range, text, false)) || (await isBeginning(conversation, range, text, true))
}

/** Reads no further than the text goes. */
async function isBeginning(
  conversation: Conversation,
  { seq, beforeSeq }: AnswerRange,
  text: string,
  isStructured: boolean,
): Promise<boolean> {
  let at = 0
  let start: number | undefined = seq
  while (start !== undefined) {
    let end: number = start
    const builder = new ChatBuilder({
      conversationId: conversation.id,
      isTemporary: conversation.state.settings.external_id === undefined,
      isStructured,
      functions: new Set(),
    })
    for await (const step of readTurn(conversation.log, start)) {
      end = step.seq ?? end
      if (end >= beforeSeq) return false
      if (isUnknown(step)) return true
      if (isStructured && isWithoutSchema(step)) return false
      for (const { content = '' } of builder.addStep(step)) {
        const piece = comparable(content)
        if (piece.length >= text.length - at) return piece.startsWith(text.slice(at))
        if (!text.startsWith(piece, at)) return false
        at += piece.length
      }
    }
    start = await nextTurn(conversation, { afterSeq: Math.max(end, start), beforeSeq })
  }
  return false
}

const WHOLE: ReadonlySet<string> = new Set(['completed', 'finished'])

function isUnknown({ change, event, isOfBefore }: TurnStep): boolean {
  if (isOfBefore) return false
  if (event?.type === 'ModelRetry') return event.parent_tool_use_id === undefined
  if (event?.type === 'AssistantMessage') return event.parent_tool_use_id === undefined && event.partial === true
  return change?.type === 'ended' && !WHOLE.has(change.result.stop_reason)
}

const isWithoutSchema = ({ change, isOfBefore }: TurnStep): boolean =>
  !isOfBefore && change?.type === 'ended' && change.result.structured_output === undefined

const BEGINNINGS: ReadonlySet<string> = new Set(['UserMessage', 'RequestAnswered'])

/** Returns the seq at which the answer continues after a call has its result. */
async function nextTurn(
  { log, state }: Conversation,
  range: { readonly afterSeq: number; readonly beforeSeq: number },
): Promise<number | undefined> {
  for await (const { events } of readPages(log, { ...range, types: BEGINNINGS, limit: 16 }))
    for (const { event } of events) if (holds(state.rewound, event)) return event.seq
  return undefined
}

const HIDDEN = /<(details|think|reasoning)\b/g

/** Clients show reasoning in the text, and leave it out later. Spaces are lost in many places. */
export function comparable(text: string): string {
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
