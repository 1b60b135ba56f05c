/** The Responses API, by the client of OpenAI. It names the conversation in each request. */
import OpenAI from 'openai'
import type { ResponseInput } from 'openai/resources/responses/responses'
import { expect } from 'vitest'
import type { Addressed, ClientPlace, ProtocolClient, QuestionAnswer, Verdict } from './protocol-client.ts'

const APPROVES = { type: 'mcp', server_label: 'agent-server', server_url: 'https://agent-server.invalid' } as const

export class ResponsesClient implements ProtocolClient {
  readonly #openai: OpenAI

  constructor({ url, key }: ClientPlace) {
    this.#openai = new OpenAI({ apiKey: key, baseURL: `${url}/v1`, maxRetries: 0 })
  }

  async begin(text: string): Promise<Addressed> {
    const { id: response } = await this.#openai.responses.create({ model: 'default', input: text, tools: [APPROVES] })
    const id = response.slice(5, 37).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
    return { id, thread: id }
  }

  async decide(conversation: Addressed, { command, behavior, reason, answer }: Verdict): Promise<void> {
    const request = (await this.#items(conversation)).find((item) => item.type === 'mcp_approval_request')
    if (!request) throw new Error('no approval is requested')
    expect(JSON.parse(request.arguments)).toEqual({ command })
    const isApproved = behavior === 'allow'
    const response = {
      type: 'mcp_approval_response',
      approval_request_id: request.id,
      approve: isApproved,
      ...(!isApproved && { reason }),
    } as const
    expect(await this.#respond(conversation, [response])).toBe(answer)
  }

  async answer(conversation: Addressed, { label, answer }: QuestionAnswer): Promise<void> {
    const [last] = await this.#items(conversation)
    expect(JSON.stringify(last)).toContain(label)
    expect(await this.#respond(conversation, label)).toBe(answer)
  }

  continueWith = (conversation: Addressed, text: string) => this.#respond(conversation, text)

  async finalText(conversation: Addressed): Promise<string> {
    const last = (await this.#items(conversation)).find((item) => item.type === 'message' && item.role === 'assistant')
    if (last?.type !== 'message') return ''
    return last.content.flatMap((part) => (part.type === 'output_text' ? [part.text] : [])).join('')
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  /** Returns the text of the response, which is the same when it is read again. */
  async #respond(conversation: Addressed, input: ResponseInput | string): Promise<string> {
    const body = { model: 'default', conversation: nameOf(conversation), input, tools: [APPROVES] }
    const { id, output_text: text } = await this.#openai.responses.create(body)
    const again = await this.#openai.responses.retrieve(id)
    expect(JSON.stringify(again.output)).toContain(JSON.stringify(text))
    return text
  }

  /** The newest items, the newest first. */
  async #items(conversation: Addressed) {
    return (await this.#openai.conversations.items.list(nameOf(conversation), { order: 'desc' })).data
  }
}

const nameOf = ({ id }: Addressed): string => `conv_${id.replaceAll('-', '')}`
