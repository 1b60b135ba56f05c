/** The conversation by the client of AG-UI. */
import type { Interrupt, RunAgentParameters } from '@ag-ui/client'
import { HttpAgent } from '@ag-ui/client'
import type { Reply, StoryClient, StoryPlace } from './story-client.ts'
import { conversationOf, post } from './story-client.ts'

const TOOLS = [{ name: 'look_up', description: 'Looks an order up.', parameters: { type: 'object' } }]

type Outcome = { readonly interrupts?: readonly Interrupt[]; readonly pendingToolCallIds?: readonly string[] }

export class AgUiStory implements StoryClient {
  readonly #place: StoryPlace
  readonly #agent: HttpAgent
  #outcome: Outcome = {}

  constructor(place: StoryPlace) {
    this.#place = place
    const headers = { authorization: `Bearer ${place.key}` }
    this.#agent = new HttpAgent({ url: `${place.url}/ag-ui/default`, threadId: crypto.randomUUID(), headers })
  }

  id = () => conversationOf(this.#place, this.#agent.threadId)

  say = async (text: string, image?: string) => {
    const picture = {
      type: 'image' as const,
      source: { type: 'data' as const, value: image ?? '', mimeType: 'image/png' },
    }
    const content = image === undefined ? text : [{ type: 'text' as const, text }, picture]
    this.#agent.addMessage({ id: crypto.randomUUID(), role: 'user', content })
    return await this.#run()
  }

  ask = async (text: string) => void (await this.say(text))

  reply = async (reply: Reply) => {
    if ('output' in reply) {
      const [toolCallId = ''] = this.#outcome.pendingToolCallIds ?? []
      this.#agent.addMessage({ id: crypto.randomUUID(), role: 'tool', toolCallId, content: reply.output })
      return await this.#run()
    }
    const payload = 'allow' in reply ? { approved: true } : { answers: { 0: reply.label } }
    const interrupts = this.#outcome.interrupts ?? []
    return await this.#run({
      resume: interrupts.map(({ id }) => ({ interruptId: id, status: 'resolved' as const, payload })),
    })
  }

  stop = async () => void (await post(this.#place, '/ag-ui/default/stop', { threadId: this.#agent.threadId }))

  comeBack = async () => {}

  shown = async () => {
    const { messages } = this.#agent
    return JSON.stringify(messages.slice(messages.findLastIndex(({ role }) => role === 'user')))
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  async #run(parameters: RunAgentParameters = {}): Promise<string> {
    let failed: Error | undefined
    await this.#agent.runAgent(
      { tools: TOOLS, ...parameters },
      {
        onRunFailed: ({ error }) => void (failed = error),
        onRunFinishedEvent: ({ event }) => void (this.#outcome = (event as { outcome?: Outcome }).outcome ?? {}),
      },
    )
    if (failed) throw failed
    const last = this.#agent.messages.findLast(({ role, content }) => role === 'assistant' && content)
    return typeof last?.content === 'string' ? last.content : ''
  }
}
