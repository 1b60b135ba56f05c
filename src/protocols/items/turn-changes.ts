/**
 * What readers of a turn are shown, in one order: live, with pieces of text, and replayed from the log it is the same. The only
 * file that says when a turn has ended or rests. Pure.
 */
import { cutReasonOf } from '../../contract/finish-reason.ts'
import type { Event, EventOf } from '../../contract/events/event.ts'
import type { TransientEvent } from '../../contract/events/transient-event.ts'
import { joinReasoning } from '../../contract/values/message.ts'

/** `text` and `reasoning`: of the answer `messageId`. `call`: by the id of the call. `asked`: what the turn waits for. */
export type TurnChange = AtPosition &
  (
    | { readonly type: 'begun'; readonly kind: TextKind; readonly messageId: string }
    | {
        readonly type: 'grown'
        readonly kind: TextKind
        readonly messageId: string
        readonly from: number
        readonly text: string
      }
    | { readonly type: 'complete'; readonly kind: TextKind; readonly messageId: string; readonly text: string }
    | { readonly type: 'retracted'; readonly kind: TextKind; readonly messageId: string; readonly text: string }
    | { readonly type: 'call'; readonly call: EventOf<'ToolUse'> }
    | { readonly type: 'result'; readonly call: EventOf<'ToolUse'>; readonly result: EventOf<'ToolResult'> }
    | { readonly type: 'asked'; readonly request: EventOf<'RequestOpened'> }
    | { readonly type: 'rests' }
    | {
        readonly type: 'ended'
        readonly result: EventOf<'Result'>
        readonly error: EventOf<'ErrorEvent'> | undefined
        /** The model has written as much as the request allows. */
        readonly isAtLimit?: true
      }
  )

/**
 * `position` follows from the log and grows from change to change. A piece of text has that of its last character, so that a
 * reader can continue within a text, however it was cut into pieces.
 */
type AtPosition = { readonly position: number }
export type TextKind = 'reasoning' | 'text'

/** Positions of one answer: of its reasoning, of its text, of its calls and what follows. */
const ANSWER = 2 ** 26
const BASE: Readonly<Record<TextKind, number>> = { reasoning: 0, text: 2 ** 24 }
const AFTER_TEXT = 2 ** 23
const CALLS = 2 ** 25

/** Calls that need no answer may begin only when the others have theirs. */
const WAITS: ReadonlySet<string> = new Set(['waiting_for_confirmation', 'waiting_for_input', 'waiting_for_client'])

/** The answer that is being written. */
type Draft = {
  readonly messageId: string
  reasoning: string
  text: string
  /** What may be the beginning of the text: white space, which alone is not a text. */
  blank: string
  isThought: boolean
  readonly begun: Set<TextKind>
}
type AssistantDelta = Extract<TransientEvent, { type: 'AssistantDelta' }>
type WithoutPosition<T> = T extends unknown ? Omit<T, 'position'> : never
type Change = WithoutPosition<TurnChange>

/**
 * Call `add` with the events of a conversation, in the order of the feed: from the message that the turn begins with, or, if it
 * begins with an answer to a request, from the last answer of the model before it.
 */
export class TurnChanges {
  /** Answers and failed attempts so far, from the log alone. */
  #answers = 0
  #afterCalls = 0
  #draft: Draft | undefined
  /** Pieces of the next answer, which may begin before the last result is stored. */
  #held: AssistantDelta[] = []
  readonly #open = new Map<string, EventOf<'ToolUse'>>()
  /** The key is a request, the value the calls of the main agent that wait for its answer. */
  readonly #waits = new Map<string, readonly string[]>()
  /** Whether the last change of it says that the turn rests. */
  #rests = false
  #error: EventOf<'ErrorEvent'> | undefined
  /** Why the last answer ended. */
  #finishReason = ''
  #hasEnded = false
  #out: TurnChange[] = []

  get hasEnded(): boolean {
    return this.#hasEnded
  }

  add(event: Event | TransientEvent): readonly TurnChange[] {
    this.#out = []
    if (event.type === 'RequestOpened') this.#ask(event)
    else if (event.type === 'RequestAnswered') this.#answered(event)
    else if (event.type === 'StatusUpdate') this.#restIf(WAITS.has(event.status))
    else if (event.type === 'RequestClosed') this.#waits.delete(event.request_id)
    else if (!('parent_tool_use_id' in event) || event.parent_tool_use_id === undefined) this.#take(event)
    return this.#out
  }

  /** An event of the main agent. */
  #take(event: Event | TransientEvent): void {
    switch (event.type) {
      case 'AssistantDelta':
        if (this.#open.size > 0) this.#held.push(event)
        else this.#grow(event)
        return
      case 'AssistantAborted':
        return this.#retract(event.message_id)
      case 'ModelRetry':
        this.#retract(event.message_id)
        this.#next()
        return
      case 'AssistantMessage':
        return this.#store(event)
      case 'ToolUse':
        this.#open.set(event.tool_use_id, event)
        return this.#after({ type: 'call', call: event })
      case 'ToolResult':
        return this.#finish(event)
      case 'ErrorEvent':
        this.#error = event
        return
      case 'Result':
        if (event.background_agent_id === undefined) this.#end(event)
        return
      default:
    }
  }

  #ask(request: EventOf<'RequestOpened'>): void {
    const { parent_tool_use_id: parent, tool_use_ids } = request
    this.#waits.set(request.request_id, parent === undefined ? tool_use_ids : [parent])
    this.#rests = false
    this.#after({ type: 'asked', request })
    // A client executes one call at a time, and the calls after it begin with its result.
    if (request.kind === 'client_tool' && parent === undefined) this.#restIf(true)
    else this.#restIfAllWait()
  }

  /** A decision may be about some of the calls of a request: the others still wait. */
  #answered({ request_id: id, kind, tool_use_ids, parent_tool_use_id: parent }: EventOf<'RequestAnswered'>): void {
    const waiting = this.#waits.get(id) ?? []
    const leftCalls = kind === 'permission' && !parent ? waiting.filter((call) => !tool_use_ids.includes(call)) : []
    if (leftCalls.length > 0) this.#waits.set(id, leftCalls)
    else this.#waits.delete(id)
  }

  #grow({
    message_id: messageId,
    offset,
    reasoning_delta: reasoningDelta,
    text_delta: textDelta,
  }: AssistantDelta): void {
    const draft = this.#draftOf(messageId)
    if (reasoningDelta !== undefined && !draft.isThought)
      this.#extend(draft, 'reasoning', joinText(draft.reasoning, offset, reasoningDelta))
    if (textDelta === undefined) return
    const text = joinText(draft.text === '' ? draft.blank : draft.text, offset, textDelta)
    if (!/\S/.test(text)) {
      draft.blank = text
      return
    }
    this.#endThought(draft, draft.reasoning)
    this.#extend(draft, 'text', text)
  }

  #store(message: EventOf<'AssistantMessage'>): void {
    this.#finishReason = message.stop_reason
    this.#releaseHeld()
    const draft = this.#draftOf(message.message_id)
    this.#endThought(draft, reasoningOfAnswer(message))
    const text = textOfAnswer(message)
    this.#extend(draft, 'text', text)
    if (text !== '')
      this.#put({ type: 'complete', kind: 'text', messageId: draft.messageId, text }, BASE.text + AFTER_TEXT)
    this.#draft = undefined
    this.#next()
  }

  #draftOf(messageId: string): Draft {
    if (this.#draft && this.#draft.messageId !== messageId) this.#retract(this.#draft.messageId)
    return (this.#draft ??= { messageId, reasoning: '', text: '', blank: '', isThought: false, begun: new Set() })
  }

  #extend(draft: Draft, kind: TextKind, whole: string): void {
    const { messageId, begun } = draft
    const from = draft[kind].length
    if (whole.length <= from) return
    if (!begun.has(kind)) this.#put({ type: 'begun', kind, messageId }, BASE[kind])
    begun.add(kind)
    draft[kind] = whole
    this.#put({ type: 'grown', kind, messageId, from, text: whole.slice(from) }, BASE[kind] + whole.length)
  }

  /** What comes after the beginning of the text is not shown as reasoning. */
  #endThought(draft: Draft, whole: string): void {
    if (draft.isThought) return
    this.#extend(draft, 'reasoning', whole)
    draft.isThought = true
    const { messageId } = draft
    if (whole !== '') this.#put({ type: 'complete', kind: 'reasoning', messageId, text: whole }, AFTER_TEXT)
  }

  #retract(messageId: string): void {
    this.#held = this.#held.filter((delta) => delta.message_id !== messageId)
    const draft = this.#draft
    if (draft?.messageId !== messageId) return
    this.#draft = undefined
    for (const kind of draft.begun)
      this.#put({ type: 'retracted', kind, messageId, text: draft[kind] }, BASE.text + AFTER_TEXT + 1)
  }

  #next(): void {
    this.#answers++
    this.#afterCalls = 0
  }

  #finish(result: EventOf<'ToolResult'>): void {
    const call = this.#open.get(result.tool_use_id)
    if (!call) return
    this.#open.delete(result.tool_use_id)
    this.#rests = false
    this.#after({ type: 'result', call, result })
    if (this.#open.size === 0) this.#releaseHeld()
    else this.#restIfAllWait()
  }

  #releaseHeld(): void {
    const heldEvents = this.#held
    this.#held = []
    for (const delta of heldEvents) this.#grow(delta)
  }

  #restIfAllWait(): void {
    const waiting = new Set(this.#waits.values().flatMap((ids) => ids))
    this.#restIf(this.#open.size > 0 && this.#open.keys().every((id) => waiting.has(id)))
  }

  #restIf(rests: boolean): void {
    if (rests && !this.#rests) this.#after({ type: 'rests' })
    this.#rests = rests
  }

  #end(result: EventOf<'Result'>): void {
    if (this.#draft) this.#retract(this.#draft.messageId)
    const isAtLimit = result.stop_reason === 'error' && cutReasonOf(this.#finishReason) === 'output_limit'
    const limit = isAtLimit && { isAtLimit }
    this.#out.push({ type: 'ended', result, error: this.#error, ...limit, position: this.#answers * ANSWER + CALLS })
    this.#hasEnded = true
    this.#error = undefined
  }

  /** What follows an answer, before the next one. */
  #after(change: Change): void {
    const answer = Math.max(this.#answers - 1, 0)
    this.#out.push({ ...change, position: answer * ANSWER + CALLS + this.#afterCalls++ })
  }

  #put(change: Change, minor: number): void {
    this.#out.push({ ...change, position: this.#answers * ANSWER + minor })
  }
}

/** A reader that comes late gets what was written so far once more, in one piece. */
const joinText = (knownText: string, offset: number, piece: string): string =>
  offset > knownText.length ? knownText : knownText + piece.slice(knownText.length - offset)

/** What comes before the first text. */
export function reasoningOfAnswer({ content }: EventOf<'AssistantMessage'>): string {
  const firstText = content.findIndex(({ type }) => type === 'text')
  const before = firstText < 0 ? content : content.slice(0, firstText)
  return joinReasoning(before)
}

/** All of it: the content leaves out blocks that are only white space, which were sent live. */
export const textOfAnswer = ({ text }: EventOf<'AssistantMessage'>): string => text
