/**
 * Messages that wait above the prompt. Those in the chat wait for the end of a run, and no server has them; those that the
 * server has stored wait for the next step of the agent.
 */
import type { Status } from '../../../contract/events/status.ts'
import { oneLine } from '../render/lines.ts'
import type { Theme } from '../render/theme.ts'
import type { ChatState } from '../state/chat-state.ts'
import { waitingMessages } from '../state/unread.ts'
import { cleanLine } from '../state/clean-text.ts'

/** Shown of a message. */
const MAX_CHARS = 500
const MAX_SHOWN = 5

const TAKES_BACK = 'Up in an empty prompt takes the last one back.'

type Queue = {
  readonly send: (text: string) => void
  /** Returns false if the prompt has a text already. */ readonly restore: (text: string) => boolean
}

export class QueuedMessages {
  readonly #queue: Queue
  #texts: readonly string[] = []

  constructor(queue: Queue) {
    this.#queue = queue
  }

  /** Sends the next one at the end of a run. After an error, or an interruption, the person decides. */
  afterStatus(status: Status): void {
    const [first, ...others] = this.#texts
    if (first === undefined) return
    if (status === 'idle' || status === 'finished') {
      this.#texts = others
      this.#queue.send(first)
    } else if (status === 'paused' || status === 'error') this.giveBack()
  }

  /** Puts all of them into the prompt, unless it has a text. */
  giveBack(): void {
    if (this.#texts.length > 0 && this.#queue.restore(this.#texts.join('\n\n'))) this.#texts = []
  }

  add(text: string): void {
    this.#texts = [...this.#texts, text]
  }

  takeLast(): string | undefined {
    const last = this.#texts.at(-1)
    this.#texts = this.#texts.slice(0, -1)
    return last
  }

  /** Stored messages that the agent has not read are only counted: they are in the conversation above. */
  lines(width: number, theme: Theme, state: ChatState): string[] {
    const unreadCount = waitingMessages(state)
    const waitingText = unreadCount === 1 ? '1 message waits' : `${unreadCount} messages wait`
    const hiddenCount = this.#texts.length - MAX_SHOWN
    const lines = [
      ...(unreadCount > 0
        ? [`  ${waitingText} for the next step of the agent${this.#texts.length > 0 ? '.' : `; ${TAKES_BACK}`}`]
        : []),
      ...this.#texts.slice(0, MAX_SHOWN).map((text) => `  queued: ${cleanLine(text.slice(0, MAX_CHARS))}`),
      ...(hiddenCount > 0 ? [`  and ${hiddenCount} more`] : []),
      ...(this.#texts.length > 0 ? [`  Sent when the run ends; ${TAKES_BACK}`] : []),
    ]
    return lines.map((line) => theme.dim(oneLine(line, width)))
  }
}
