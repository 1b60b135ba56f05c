/** The conversation by the client of OpenAI: it names the conversation in each request. */
import OpenAI from 'openai'
import type { ResponseInput, ResponseOutputItem } from 'openai/resources/responses/responses'
import { eventually } from '../cases.ts'
import type { Reply, StoryClient, StoryPlace } from './story-client.ts'

const TOOLS = [
  { type: 'mcp' as const, server_label: 'agent-server', server_url: 'https://agent-server.invalid' },
  { type: 'function' as const, name: 'look_up', strict: false, parameters: { type: 'object', properties: {} } },
]

export class ResponsesStory implements StoryClient {
  readonly #openai: OpenAI
  readonly #conversation: string
  #response = ''
  #output: readonly ResponseOutputItem[] = []

  private constructor(openai: OpenAI, conversation: string) {
    this.#openai = openai
    this.#conversation = conversation
  }

  static async start({ url, key }: StoryPlace): Promise<ResponsesStory> {
    const openai = new OpenAI({ apiKey: key, baseURL: `${url}/v1`, maxRetries: 0 })
    const { id } = await openai.conversations.create({ model: 'default' } as object)
    return new ResponsesStory(openai, id)
  }

  id = async () => this.#conversation.slice('conv_'.length).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')

  say = async (text: string, image?: string) => {
    const picture = {
      type: 'input_image' as const,
      detail: 'auto' as const,
      image_url: `data:image/png;base64,${image}`,
    }
    const content = [{ type: 'input_text' as const, text }, ...(image === undefined ? [] : [picture])]
    return await this.#respond([{ role: 'user', content }])
  }

  ask = async (text: string) => void (await this.say(text))

  reply = async (reply: Reply) => {
    if ('label' in reply) return await this.say(reply.label)
    const waiting = this.#output.at(-1)
    if ('allow' in reply && waiting?.type === 'mcp_approval_request')
      return await this.#respond([{ type: 'mcp_approval_response', approval_request_id: waiting.id, approve: true }])
    if ('output' in reply && waiting?.type === 'function_call')
      return await this.#respond([{ type: 'function_call_output', call_id: waiting.call_id, output: reply.output }])
    throw new Error(`nothing waits: ${JSON.stringify(waiting)}`)
  }

  stop = async () => {
    await eventually(() => this.#response !== '')
    await this.#openai.responses.cancel(this.#response)
  }

  comeBack = async () => {}

  shown = async () => JSON.stringify((await this.#openai.responses.retrieve(this.#response)).output)

  async [Symbol.asyncDispose](): Promise<void> {}

  async #respond(input: ResponseInput): Promise<string> {
    this.#response = ''
    const body = { model: 'default', conversation: this.#conversation, input, tools: TOOLS, stream: true } as const
    for await (const event of await this.#openai.responses.create(body)) {
      if ('response' in event) this.#response = event.response.id
      if (event.type === 'response.completed') this.#output = event.response.output
    }
    const texts = this.#output.flatMap((item) => (item.type === 'message' ? item.content : []))
    const last = texts.at(-1)
    return last?.type === 'output_text' ? last.text : ''
  }
}
