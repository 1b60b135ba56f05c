/** The messages of a conversation, as a page shows them when it is loaded. */
import type { Event } from '../../contract/events/event.ts'
import { holds } from '../../contract/events/rewound.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import { readPages } from '../../events/read-pages.ts'
import type { ReadEvent } from '../items/follow-turn.ts'
import { stepsOf } from '../items/follow-turn.ts'
import { TurnChanges } from '../items/turn-changes.ts'
import { ChunkBuilder } from './chunk-builder.ts'
import { clientToolsFrom } from './client-tools-in.ts'
import type { TurnState } from './turn-marks.ts'
import { turnBefore, TurnMarks } from './turn-marks.ts'
import type { UiMessageObject } from './ui-message.ts'
import { MessageBuilder } from './ui-message.ts'
import { inputPartsOf, userMessageId } from './user-message.ts'

/** The oldest turns are left out, not a part of the newest one. A page has them all in memory. */
const MAX_CHARS = 4 * 1024 * 1024
const PAGE = { limit: 256, maxBytes: 1024 * 1024 }

/** The newest, the oldest of them first. A turn that has not ended is as far as it is stored. What was taken back is not there. */
export async function readHistory(
  conversation: Conversation,
  maxChars = MAX_CHARS,
): Promise<readonly UiMessageObject[]> {
  const { id: conversationId } = conversation
  const { events, state } = await newestEvents(conversation, maxChars)
  const clientToolsAt = await clientToolsFrom(conversation, events[0]?.seq ?? 1)
  const marks = new TurnMarks(state)
  const messages: UiMessageObject[] = []
  let turn: TurnReader | undefined
  const endTurn = () => {
    if (turn?.message) messages.push(turn.message)
    turn = undefined
  }
  for (const event of events) {
    const { seq } = event
    const mark = marks.add(event)
    if (mark === 'begins') {
      endTurn()
      turn = new TurnReader(new ChunkBuilder({ conversationId, start: seq }, { clientToolsAt }), seq)
      if (event.type === 'UserMessage')
        messages.push({ id: userMessageId(event), role: 'user', parts: inputPartsOf(event.content) })
    }
    turn?.add({ event, seq })
    if (mark === 'ends') endTurn()
  }
  endTurn()
  return messages
}

type NewestEvents = { readonly events: readonly Event[]; readonly state: TurnState }

/** Returns the events that hold, in order, back to where they are too many, and the state before them. A turn begins within them. */
async function newestEvents(conversation: Conversation, maxChars: number): Promise<NewestEvents> {
  const { log, state } = conversation
  const withdrawn = new Set<number>()
  const newestFirst: Event[] = []
  let room = maxChars
  for await (const { events } of readPages(log, { beforeSeq: log.head + 1, order: 'desc', ...PAGE }))
    for (const { event } of events) {
      if (event.type === 'MessageWithdrawn') withdrawn.add(event.message_seq)
      if (withdrawn.has(event.seq) || !holds(state.rewound, event)) continue
      newestFirst.push(event)
      room -= JSON.stringify(event).length
      if (room >= 0) continue
      const window = { events: newestFirst.toReversed(), state: (await turnBefore(conversation, event.seq)).state }
      if (hasBeginning(window)) return window
      room = maxChars
    }
  return { events: newestFirst.toReversed(), state: 'none' }
}

function hasBeginning({ events, state }: NewestEvents): boolean {
  const marks = new TurnMarks(state)
  return events.some((event) => marks.add(event) === 'begins')
}

class TurnReader {
  readonly #changes = new TurnChanges()
  readonly #message = new MessageBuilder()
  readonly #builder: ChunkBuilder
  readonly #start: number
  #isShown = false
  #hasEnded = false

  constructor(builder: ChunkBuilder, start: number) {
    this.#builder = builder
    this.#start = start
    for (const chunk of builder.begin()) this.#message.add(chunk)
  }

  add(event: ReadEvent): void {
    if (this.#hasEnded) return
    for (const step of stepsOf(this.#changes, event, this.#start))
      for (const chunk of this.#builder.add(step)) {
        this.#isShown = true
        this.#message.add(chunk)
      }
  }

  /** Undefined if the agent has said and done nothing. */
  get message(): UiMessageObject | undefined {
    if (!this.#isShown) return undefined
    this.#hasEnded = true
    for (const chunk of this.#builder.end()) this.#message.add(chunk)
    return this.#message.message
  }
}
