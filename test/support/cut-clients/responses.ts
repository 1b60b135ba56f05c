/** The Responses API by the client of OpenAI, which continues its stream after the last event that it has. */
import OpenAI from 'openai'
import type { Response, ResponseStreamEvent } from 'openai/resources/responses/responses'
import type { ProtocolClient } from '../protocol-clients.ts'
import type { TestServer } from '../server.ts'
import { KEY } from '../server.ts'

type Turn = { key: string; text: string; id: string; last: number; response: Response | undefined }

export class ResponsesCutClient implements ProtocolClient {
  readonly #openai: OpenAI
  readonly #turns: Turn[] = []
  /** What its events have said, by the id of the item. */
  readonly #texts = new Map<string, string>()
  #connection = new AbortController()

  constructor({ url }: TestServer) {
    this.#openai = new OpenAI({ apiKey: KEY, baseURL: `${url}/v1`, maxRetries: 0 })
  }

  async say(text: string, onEvent?: () => void): Promise<void> {
    this.#turns.push({ key: crypto.randomUUID(), text, id: '', last: -1, response: undefined })
    await this.#follow(onEvent)
  }

  leave(): void {
    this.#connection.abort()
  }

  comeBack = () => this.#follow()

  async stop(): Promise<void> {
    await this.#openai.responses.cancel(this.#turns.at(-1)!.id)
  }

  shown(): readonly unknown[] {
    return this.#turns.map(({ response }) => plain(response, ({ id }) => this.#texts.get(id) ?? ''))
  }

  async stored(): Promise<readonly unknown[]> {
    const responses = await Promise.all(this.#turns.map(({ id }) => this.#openai.responses.retrieve(id)))
    return responses.map((response) => plain(response, textOf))
  }

  answer(): string {
    const { response } = this.#turns.at(-1)!
    return messagesIn(response).map(textOf).join('|')
  }

  async #open({ key, text, id, last }: Turn): Promise<AsyncIterable<ResponseStreamEvent>> {
    this.#connection = new AbortController()
    const { signal } = this.#connection
    if (id !== '') return await this.#openai.responses.retrieve(id, { stream: true, starting_after: last }, { signal })
    const previous_response_id = this.#turns.at(-2)?.id ?? null
    const body = { model: 'coder', input: text, stream: true, previous_response_id } as const
    return await this.#openai.responses.create(body, { signal, headers: { 'Idempotency-Key': key } })
  }

  async #follow(onEvent?: () => void): Promise<void> {
    const turn = this.#turns.at(-1)!
    try {
      for await (const event of await this.#open(turn)) {
        if ('response' in event) {
          turn.id = event.response.id
          turn.response = event.response
        }
        if (event.type === 'response.output_text.delta')
          this.#texts.set(event.item_id, (this.#texts.get(event.item_id) ?? '') + event.delta)
        turn.last = event.sequence_number
        onEvent?.()
      }
    } catch {
      // The connection was lost: it comes back.
    }
  }
}

type Message = Extract<Response['output'][number], { type: 'message' }>

const messagesIn = (response: Response | undefined): Message[] =>
  (response?.output ?? []).flatMap((item) => (item.type === 'message' ? [item] : []))

const textOf = ({ content }: Message): string =>
  content.map((part) => (part.type === 'output_text' ? part.text : '')).join('')

const plain = (response: Response | undefined, text: (message: Message) => string) => ({
  id: response?.id,
  status: response?.status,
  metadata: response?.metadata,
  items: response?.output.flatMap((item): unknown[] => {
    if (item.type === 'reasoning') return []
    return item.type === 'message' ? [{ id: item.id, status: item.status, text: text(item) }] : [item]
  }),
})
