/** The conversation as a thread of Chat Completions, by the client of OpenAI. Decisions are those of the API: the protocol has no word for them. */
import OpenAI from 'openai'
import type { ChatCompletionMessageParam } from 'openai/resources/chat/completions'
import { eventually } from '../cases.ts'
import type { Reply, StoryClient, StoryPlace } from './story-client.ts'
import { conversationOf, get, post } from './story-client.ts'

const TOOLS = [{ type: 'function' as const, function: { name: 'look_up', parameters: { type: 'object' } } }]

type Call = { readonly id: string; readonly name: string; readonly arguments: string }
type Waiting = { readonly request_id: string; readonly payload: { readonly tool_uses: readonly object[] } }

export class ChatStory implements StoryClient {
  readonly #place: StoryPlace
  readonly #openai: OpenAI
  readonly #thread = crypto.randomUUID()
  readonly #messages: ChatCompletionMessageParam[] = []
  #key = ''
  #call: Call | undefined

  constructor(place: StoryPlace) {
    this.#place = place
    this.#openai = new OpenAI({ apiKey: place.key, baseURL: `${place.url}/v1`, maxRetries: 0 })
  }

  id = () => conversationOf(this.#place, this.#thread)

  say = async (text: string, image?: string) => {
    const picture = { type: 'image_url' as const, image_url: { url: `data:image/png;base64,${image}` } }
    const parts = [{ type: 'text' as const, text }, ...(image === undefined ? [] : [picture])]
    return await this.#send({ role: 'user', content: parts })
  }

  ask = async (text: string) => void (await this.say(text))

  reply = async (reply: Reply) => {
    if ('label' in reply) return await this.say(reply.label)
    if ('output' in reply)
      return await this.#send({ role: 'tool', tool_call_id: this.#call?.id ?? '', content: reply.output })
    const path = `/conversations/${await this.id()}`
    const { items } = (await get(this.#place, `${path}/requests`)) as { items: readonly Waiting[] }
    for (const { request_id, payload } of items) {
      const decisions = payload.tool_uses.map((call) => {
        const { tool_use_id, input_hash } = call as { tool_use_id: string; input_hash: string }
        return { tool_use_id, input_hash, behavior: 'allow' }
      })
      await post(this.#place, `${path}/requests/${request_id}`, { kind: 'permission', decisions })
    }
    await eventually(async () => (await get(this.#place, path))['status'] === 'idle')
    const results = (await get(this.#place, `${path}/events?types=Result&order=desc&limit=1`)) as { items: unknown[] }
    return String(Object(results.items[0])['final_text'])
  }

  stop = async () => void (await post(this.#place, `/conversations/${await this.id()}/pause`, { interrupt: true }))

  comeBack = async () => {}

  /** The same request gets the answer as it is stored: a stream cannot take back what it has shown. */
  shown = async () => {
    const messages = this.#messages.slice(0, -1)
    const body = { model: 'default', messages, tools: TOOLS, stream: true } as const
    let text = ''
    for await (const { choices } of await this.#openai.chat.completions.create(body, { headers: this.#headers }))
      text += choices[0]?.delta.content ?? ''
    return text
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  get #headers() {
    return { 'X-Conversation-Id': this.#thread, 'Idempotency-Key': this.#key }
  }

  /** Returns the last text of the answer: an empty line is between two of them. */
  async #send(message: ChatCompletionMessageParam): Promise<string> {
    this.#messages.push(message)
    this.#key = crypto.randomUUID()
    this.#call = undefined
    const messages = [...this.#messages]
    const body = { model: 'default', messages, tools: TOOLS, stream: true } as const
    let text = ''
    for await (const { choices } of await this.#openai.chat.completions.create(body, { headers: this.#headers })) {
      const { content, tool_calls: calls } = choices[0]?.delta ?? {}
      text += content ?? ''
      const [call] = calls ?? []
      if (call?.id !== undefined)
        this.#call = { id: call.id, name: call.function?.name ?? '', arguments: call.function?.arguments ?? '' }
    }
    this.#messages.push(this.#answer(text))
    // What the agent says of a result may have empty lines itself.
    return /(?:^|\n\n)(Read: .*)$/s.exec(text)?.[1] ?? text.split('\n\n').at(-1) ?? ''
  }

  #answer(content: string): ChatCompletionMessageParam {
    if (!this.#call) return { role: 'assistant', content }
    const { id, ...called } = this.#call
    return { role: 'assistant', content, tool_calls: [{ id, type: 'function', function: called }] }
  }
}
