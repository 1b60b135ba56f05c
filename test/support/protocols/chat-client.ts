/** The Chat Completions API with a thread, by the client of OpenAI. It has no word for a decision, and none for reading a thread. */
import OpenAI from 'openai'
import { expect } from 'vitest'
import type { Addressed, ClientPlace, ProtocolClient, QuestionAnswer } from './protocol-client.ts'

export class ChatClient implements ProtocolClient {
  readonly #openai: OpenAI

  constructor({ url, key }: ClientPlace) {
    this.#openai = new OpenAI({ apiKey: key, baseURL: `${url}/v1`, maxRetries: 0 })
  }

  async begin(text: string): Promise<Addressed> {
    const thread = crypto.randomUUID()
    const { id: answer } = await this.#say(thread, text)
    const id = answer.slice('chatcmpl-'.length).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*/, '$1-$2-$3-$4-$5')
    return { id, thread }
  }

  async decide(): Promise<void> {
    throw new Error('a message decides nothing')
  }

  /** The next message is read as the answer. */
  async answer(conversation: Addressed, { label, answer }: QuestionAnswer): Promise<void> {
    expect(await this.continueWith(conversation, label)).toBe(answer)
  }

  continueWith = async ({ thread }: Addressed, text: string) => (await this.#say(thread, text)).content

  async finalText(): Promise<string> {
    throw new Error('a thread cannot be read')
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  async #say(thread: string, content: string) {
    const body = { model: 'default', messages: [{ role: 'user' as const, content }] }
    const { id, choices } = await this.#openai.chat.completions.create(body, {
      headers: { 'X-Conversation-Id': thread },
    })
    return { id, content: choices[0]?.message.content ?? '' }
  }
}
