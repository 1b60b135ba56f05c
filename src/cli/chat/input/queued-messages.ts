/** Messages that wait in the chat for the end of a run. Until then they can be changed and withdrawn: no server has them. */
import type { Status } from '../../../contract/events/status.ts'
import { oneLine } from '../render/lines.ts'
import type { Theme } from '../render/theme.ts'
import { cleanLine } from '../state/clean-text.ts'

/** Shown of a message. */
const MAX_CHARS = 500
const MAX_SHOWN = 5

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

  lines(width: number, theme: Theme): string[] {
    if (this.#texts.length === 0) return []
    const hidden = this.#texts.length - MAX_SHOWN
    return [
      ...this.#texts
        .slice(0, MAX_SHOWN)
        .map((text) => oneLine(`  queued: ${cleanLine(text.slice(0, MAX_CHARS))}`, width)),
      ...(hidden > 0 ? [oneLine(`  and ${hidden} more`, width)] : []),
      oneLine('  Sent when the run ends; Up in an empty prompt takes the last one back.', width),
    ].map(theme.dim)
  }
}
