/** The messages of a conversation, as a page shows them when it is loaded. */
import { holds } from '../../contract/events/rewound.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import { readPages } from '../../events/read-pages.ts'
import type { ReadEvent } from '../items/follow-turn.ts'
import { stepsOf } from '../items/follow-turn.ts'
import { TurnChanges } from '../items/turn-changes.ts'
import { ChunkBuilder } from './chunk-builder.ts'
import { clientToolsIn } from './client-tools-in.ts'
import { TurnMarks, withdrawnIn } from './turn-marks.ts'
import type { UiMessageObject } from './ui-message.ts'
import { MessageBuilder } from './ui-message.ts'
import { inputPartsOf, userMessageId } from './user-message.ts'

const PAGE = 256

/** A turn that has not ended is as far as it is stored. What was taken back is not there. */
export async function readHistory(conversation: Conversation): Promise<readonly UiMessageObject[]> {
  const { id: conversationId, log, state } = conversation
  const withdrawn = await withdrawnIn(conversation, 0)
  const clientTools = clientToolsIn(conversation)
  const marks = new TurnMarks()
  const messages: UiMessageObject[] = []
  let turn: TurnReader | undefined
  const endTurn = () => {
    if (turn?.message) messages.push(turn.message)
    turn = undefined
  }
  for await (const { events } of readPages(log, { limit: PAGE }))
    for (const { event, seq } of events) {
      if (!holds(state.rewound, event) || withdrawn.has(seq)) continue
      const mark = marks.add(event)
      if (mark === 'begins') {
        endTurn()
        turn = new TurnReader(new ChunkBuilder({ conversationId, start: seq }, { clientTools }), seq)
        if (event.type === 'UserMessage')
          messages.push({ id: userMessageId(event), role: 'user', parts: inputPartsOf(event.content) })
      }
      turn?.add({ event, seq })
      if (mark === 'ends') endTurn()
    }
  endTurn()
  return messages
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
