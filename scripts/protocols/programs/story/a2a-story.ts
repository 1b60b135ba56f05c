/** The conversation by the client of A2A. Each turn is a task. */
import type { Client } from '@a2a-js/sdk/client'
import { a2aClient, answerIn, askedIn, says } from '../../../../test/support/a2a.ts'
import type { Said } from '../../../../test/support/a2a.ts'
import { eventually } from '../cases.ts'
import type { Reply, StoryClient, StoryPlace } from './story-client.ts'
import { conversationOf } from './story-client.ts'

export class A2aStory implements StoryClient {
  readonly #place: StoryPlace
  readonly #client: Client
  readonly #context = crypto.randomUUID()
  #task = ''

  private constructor(place: StoryPlace, client: Client) {
    this.#place = place
    this.#client = client
  }

  static async start(place: StoryPlace): Promise<A2aStory> {
    return new A2aStory(place, await a2aClient(place.url, { key: place.key }))
  }

  id = () => conversationOf(this.#place, this.#context)

  say = async (text: string, image?: string) => await this.#send({ text, contextId: this.#context }, image)

  ask = async (text: string) => void (await this.say(text))

  reply = async (reply: Reply) => {
    if ('label' in reply) return await this.#send({ text: reply.label, taskId: this.#task })
    const [{ request_id, kind, tool_uses }] = askedIn(await this.#newest())
    const [{ tool_use_id, input_hash }] = tool_uses
    const data = { request_id, kind, decisions: [{ tool_use_id, input_hash, behavior: 'allow' }] }
    return await this.#send({ data, taskId: this.#task })
  }

  stop = async () => {
    await eventually(() => this.#task !== '')
    await this.#client.cancelTask({ tenant: '', id: this.#task, metadata: undefined })
  }

  comeBack = async () => {}

  shown = async () => JSON.stringify(await this.#newest())

  async [Symbol.asyncDispose](): Promise<void> {}

  #newest = () => this.#client.getTask({ tenant: '', id: this.#task })

  async #send(said: Said, image?: string): Promise<string> {
    const request = says(said)
    this.#task = ''
    if (image !== undefined)
      request.message?.parts.push({
        metadata: undefined,
        filename: '',
        mediaType: 'image/png',
        content: { $case: 'raw', value: Buffer.from(image, 'base64') },
      })
    for await (const { payload } of this.#client.sendMessageStream(request))
      if (payload?.$case === 'task') this.#task = payload.value.id
    return answerIn(await this.#newest())
  }
}
