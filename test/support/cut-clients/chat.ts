/** The Chat Completions API with a thread, by the client of OpenAI. It sends all messages each time, and the same request to come back. */
import OpenAI from 'openai'
import type { ChatCompletionMessageParam } from 'openai/resources/chat/completions'
import type { ProtocolClient } from '../protocol-clients.ts'
import type { TestServer } from '../server.ts'
import { KEY } from '../server.ts'

type Turn = { readonly key: string; readonly text: string; content: string }

export class ChatCutClient implements ProtocolClient {
  readonly #openai: OpenAI
  readonly #thread: string
  readonly #server: TestServer
  readonly #turns: Turn[] = []
  #conversationId = ''
  #connection = new AbortController()

  constructor(server: TestServer, thread: string) {
    this.#server = server
    this.#thread = thread
    this.#openai = new OpenAI({ apiKey: KEY, baseURL: `${server.url}/v1`, maxRetries: 0 })
  }

  async say(text: string, onEvent?: () => void): Promise<void> {
    this.#turns.push({ key: crypto.randomUUID(), text, content: '' })
    await this.#follow(this.#turns.at(-1)!, onEvent)
  }

  leave(): void {
    this.#connection.abort()
  }

  comeBack = () => this.#follow(this.#turns.at(-1)!)

  /** The protocol has no word for it. */
  async stop(): Promise<void> {
    const { status } = await this.#server.call('POST', `/conversations/${this.#conversationId}/pause`, {
      interrupt: true,
    })
    if (status !== 200) throw new Error(`the pause: ${status}`)
  }

  shown = (): readonly unknown[] => [this.#turns.at(-1)!.content]

  /** The same request gets the answer from its beginning. */
  async stored(): Promise<readonly unknown[]> {
    const turn = { ...this.#turns.at(-1)! }
    await this.#follow(turn)
    return [turn.content]
  }

  answer = (): string => this.#turns.at(-1)!.content.split('\n\n').join('|')

  async #follow(turn: Turn, onEvent?: () => void): Promise<void> {
    this.#connection = new AbortController()
    turn.content = ''
    const earlier = this.#turns.slice(0, -1).flatMap(({ text, content }): ChatCompletionMessageParam[] => [
      { role: 'user', content: text },
      { role: 'assistant', content },
    ])
    const messages = [...earlier, { role: 'user' as const, content: turn.text }]
    const headers = { 'X-Conversation-Id': this.#thread, 'Idempotency-Key': turn.key }
    const options = { signal: this.#connection.signal, headers }
    try {
      const stream = await this.#openai.chat.completions.create({ model: 'coder', messages, stream: true }, options)
      for await (const { id, choices } of stream) {
        this.#conversationId = id
          .slice('chatcmpl-'.length)
          .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*/, '$1-$2-$3-$4-$5')
        turn.content += choices[0]?.delta.content ?? ''
        onEvent?.()
      }
    } catch {
      // The connection was lost, or the run has failed.
    }
  }
}
