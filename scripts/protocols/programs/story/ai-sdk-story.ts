/** The conversation by `useChat` of the AI SDK. */
import { Chat } from '@ai-sdk/react'
import type { UIMessage } from 'ai'
import { DefaultChatTransport } from 'ai'
import type { Reply, StoryClient, StoryPlace } from './story-client.ts'
import { conversationOf, post } from './story-client.ts'

export class AiSdkStory implements StoryClient {
  readonly #place: StoryPlace
  readonly #chat: Chat<UIMessage>

  constructor(place: StoryPlace) {
    this.#place = place
    const tool = { name: 'look_up', description: 'Looks an order up.', input_schema: { type: 'object' } }
    const transport = new DefaultChatTransport<UIMessage>({
      api: `${place.url}/ai/chat`,
      headers: { authorization: `Bearer ${place.key}` },
      body: { profile: 'default', client_tools: [tool] },
    })
    this.#chat = new Chat({ id: crypto.randomUUID(), transport, onError() {} })
  }

  id = () => conversationOf(this.#place, this.#chat.id)

  say = async (text: string, image?: string) => {
    const file = { type: 'file' as const, mediaType: 'image/png', url: `data:image/png;base64,${image}` }
    await this.#chat.sendMessage({ text, ...(image !== undefined && { files: [file] }) })
    return this.#last()
  }

  ask = async (text: string) => void (await this.say(text))

  reply = async (reply: Reply) => {
    const parts = this.#chat.messages.at(-1)?.parts ?? []
    if ('label' in reply) {
      const { data } = parts.findLast(({ type }) => type === 'data-request') as { data: { request_id: string } }
      const answer = { request_id: data.request_id, answers: { 0: reply.label } }
      await this.#chat.sendMessage({ role: 'user', parts: [{ type: 'data-answer', data: answer }] })
      return this.#last()
    }
    for (const part of parts) {
      if (part.type === 'dynamic-tool' && part.state === 'approval-requested')
        await this.#chat.addToolApprovalResponse({ id: part.approval.id, approved: true })
      if (part.type === 'tool-look_up' && 'output' in reply && 'toolCallId' in part)
        await this.#chat.addToolOutput({ tool: 'look_up', toolCallId: part.toolCallId, output: reply.output })
    }
    await this.#chat.sendMessage()
    return this.#last()
  }

  stop = async () => void (await post(this.#place, `/ai/chat/${this.#chat.id}/stop`, {}))

  comeBack = async () => {}

  shown = async () => JSON.stringify(this.#chat.messages.at(-1))

  async [Symbol.asyncDispose](): Promise<void> {}

  #last(): string {
    if (this.#chat.error) throw this.#chat.error
    // The answer to a question is a message, and the agent continues the one before it.
    const message = this.#chat.messages.findLast(({ role }) => role === 'assistant')
    return message?.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).at(-1) ?? ''
  }
}
