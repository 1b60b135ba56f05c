/**
 * Messages that are being written, one for each conversation and one for the next new one: they stay while other screens are
 * shown, and while they are sent.
 */
import { signal } from '@preact/signals'
import type { CallOptions } from '../../client/client.ts'
import { draftOf, onOtherTab, remember, rememberedValue } from './remembered.ts'
import { SameRequest } from './same-request.ts'

const drafts = new Map<string, MessageDraft>()

export const newMessageDraft = () => messageDraftOf('new')

/** A command that a person runs is written in the same way. */
export const commandDraftOf = (conversationId: string) => messageDraftOf(`command ${conversationId}`)

export function messageDraftOf(conversationId: string): MessageDraft {
  const draft = drafts.get(conversationId) ?? new MessageDraft(conversationId)
  drafts.set(conversationId, draft)
  return draft
}

class MessageDraft {
  readonly text = signal('')
  readonly isSending = signal(false)
  readonly #id: string
  readonly #request: SameRequest

  constructor(id: string) {
    this.#id = id
    this.#request = new SameRequest(draftOf(`sent ${id}`))
    this.read()
  }

  /** Keeps up with other tabs, which may continue it, or send it. Returns what ends it. */
  follow(): () => void {
    this.read()
    return onOtherTab(draftOf(this.#id), () => this.read())
  }

  read(): void {
    this.#show(rememberedValue(draftOf(this.#id)) ?? '')
  }

  write(text: string): void {
    this.#show(text)
    remember(draftOf(this.#id), text)
  }

  /** Puts a message that was taken back before what is written, to be edited. */
  prepend(text: string): void {
    this.#request.forget()
    this.write([text, this.text.peek()].filter(Boolean).join('\n\n'))
  }

  /** `more`: what else `post` sends. */
  async send<T>(post: (text: string, options: CallOptions) => Promise<T>, more = ''): Promise<T> {
    const sentText = this.text.peek()
    this.isSending.value = true
    try {
      const reply = await this.#request.send(`${more} ${sentText}`, (options) => post(sentText, options))
      // What was typed meanwhile belongs to the next message.
      const text = this.text.peek()
      this.write(text.startsWith(sentText) ? text.slice(sentText.length) : text)
      return reply
    } finally {
      this.isSending.value = false
    }
  }

  #show(text: string): void {
    this.text.value = text
    // A person who empties it has seen whether the message arrived, and may say the same once more.
    if (text === '') this.#request.forget()
  }
}
