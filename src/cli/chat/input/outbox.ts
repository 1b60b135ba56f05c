/** Sends messages one after the other, so that they arrive in the order of typing, and keeps the text of one that fails. */
import { randomUUID } from 'node:crypto'
import type { ChatSession } from '../chat-session.ts'
import { withImages } from './images.ts'

type Unsent = { readonly key: string; readonly text: string }

export class Outbox {
  readonly #session: ChatSession
  readonly #directory: string
  /** It may have been stored nevertheless: the same key stores it only once. */
  #unsent: Unsent | undefined
  #last: Promise<void> = Promise.resolve()

  /** `directory`: for relative paths of images. */
  constructor(session: ChatSession, directory: string) {
    this.#session = session
    this.#directory = directory
  }

  /** Resolves when the server has the message. Rejects if it has not, or may not have. */
  send(text: string): Promise<void> {
    const session = this.#session
    const key = this.#unsent?.text === text ? this.#unsent.key : randomUUID()
    session.dispatch({ type: 'Sending', key, text, images: 0 })
    const sending = this.#last.then(() => this.#send({ key, text }))
    this.#last = sending.catch(() => {}) // reported to who sent it
    return sending
  }

  /** Returns the text of a message that was reported as not sent, and has been stored. */
  onStored(key: string): string | undefined {
    if (this.#unsent?.key !== key) return undefined
    const { text } = this.#unsent
    this.#unsent = undefined
    return text
  }

  async #send({ key, text }: Unsent): Promise<void> {
    const session = this.#session
    try {
      const { parts, notes } = await withImages(text, this.#directory)
      for (const note of notes) session.say(note)
      await session.send(parts.length > 1 ? parts : text, key)
      session.dispatch({ type: 'Sent', key })
      this.#unsent = undefined
    } catch (error) {
      this.#unsent = { key, text }
      session.dispatch({ type: 'NotSent', key })
      throw error
    }
  }
}
