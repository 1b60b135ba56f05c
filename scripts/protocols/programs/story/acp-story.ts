/** The conversation by an editor that speaks version 2 of the Agent Client Protocol, over the WebSocket. */
import { createWebSocketStream } from '@agentclientprotocol/sdk/experimental/ws-client'
import { join } from 'node:path'
import { WebSocket } from 'ws'
import { EditorV2 } from '../../../../test/cli/acp/support/editor-v2.ts'
import { shownInV2 } from '../../../../test/cli/acp/support/shown-v2.ts'
import type { Reply, StoryClient, StoryPlace } from './story-client.ts'
import { noteFrame } from './wire.ts'

export class AcpStory implements StoryClient {
  readonly #place: StoryPlace
  readonly #cwd: string
  #session = ''
  #editor: EditorV2
  #replied = Promise.withResolvers<Reply>()
  /** Requests of the agent that wait for the reply. */
  #asked = 0

  private constructor(place: StoryPlace, editor: EditorV2) {
    this.#place = place
    this.#cwd = join(place.home, crypto.randomUUID())
    this.#editor = editor
  }

  static async start(place: StoryPlace): Promise<AcpStory> {
    const story = new AcpStory(place, await connect(place))
    story.#listen()
    story.#session = await story.#editor.begin(story.#cwd)
    return story
  }

  id = async () => this.#session

  say = async (text: string, image?: string) => {
    const before = this.#editor.of(this.#session).length
    const picture = { type: 'image' as const, mimeType: 'image/png', data: image ?? '' }
    const prompt = [{ type: 'text' as const, text }, ...(image === undefined ? [] : [picture])]
    await this.#editor.agent.request('session/prompt', { sessionId: this.#session, prompt })
    await this.#editor.atRest(this.#session, before)
    return this.#last()
  }

  ask = async (text: string) => {
    await this.#editor.send(this.#session, text)
    await this.#editor.until('the request', () => this.#asked > 0)
  }

  reply = async (reply: Reply) => {
    await this.#editor.until('the request', () => this.#asked > 0)
    const before = this.#editor.of(this.#session).length
    this.#replied.resolve(reply)
    await this.#editor.atRest(this.#session, before)
    this.#asked = 0
    this.#replied = Promise.withResolvers()
    return this.#last()
  }

  stop = () => this.#editor.agent.notify('session/cancel', { sessionId: this.#session })

  comeBack = async () => {
    await this.#editor.kill()
    this.#asked = 0
    this.#editor = await connect(this.#place)
    this.#listen()
    await this.#editor.resume(this.#session, this.#cwd, { type: 'start' })
  }

  shown = async () => JSON.stringify(this.#shown().slice(this.#shown().findLastIndex(({ kind }) => kind === 'user')))

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#editor.kill()
  }

  #listen(): void {
    this.#editor.onPermission = async () => {
      this.#asked++
      await this.#replied.promise
      return { outcome: { outcome: 'selected', optionId: 'allow_once' } }
    }
    this.#editor.onQuestion = async () => {
      this.#asked++
      const reply = await this.#replied.promise
      return 'label' in reply ? { action: 'accept', content: { question_0: reply.label } } : { action: 'cancel' }
    }
  }

  #shown = () => shownInV2(this.#editor.of(this.#session))

  #last = (): string => this.#shown().findLast(({ kind }) => kind === 'message')?.text ?? ''
}

class NotedSocket extends WebSocket {
  constructor(...given: ConstructorParameters<typeof WebSocket>) {
    super(...given)
    this.on('message', (data: Buffer) => noteFrame(data.toString()))
  }
}

async function connect({ url, key }: StoryPlace): Promise<EditorV2> {
  const stream = createWebSocketStream(`${url.replace('http', 'ws')}/acp`, {
    headers: { authorization: `Bearer ${key}` },
    WebSocket: NotedSocket,
  })
  return await EditorV2.over(stream, { elicitation: { form: {} } })
}
