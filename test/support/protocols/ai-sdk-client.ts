/** The UI message stream, by `useChat` of the AI SDK. Each call is a page that loads the messages of the chat. */
import type { UIMessage } from 'ai'
import { lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai'
import { expect } from 'vitest'
import { chatOf, storedMessages, uiTextOf } from '../ui-chat.ts'
import { until } from '../until.ts'
import type { Addressed, ClientPlace, ProtocolClient, QuestionAnswer, Verdict } from './protocol-client.ts'

export class AiSdkClient implements ProtocolClient {
  readonly #place: ClientPlace

  constructor(place: ClientPlace) {
    this.#place = place
  }

  async begin(text: string): Promise<Addressed> {
    const chat = chatOf({ ...this.#place, id: crypto.randomUUID() })
    await chat.sendMessage({ text })
    if (chat.error) throw chat.error
    const { conversation_id: id } = chat.messages.at(-1)!.metadata as { conversation_id: string }
    return { id, thread: chat.id }
  }

  async decide(conversation: Addressed, { command, behavior, reason, answer }: Verdict): Promise<void> {
    const chat = await this.#open(conversation)
    const calls = chat.messages.at(-1)!.parts.flatMap((part) => (part.type === 'dynamic-tool' ? [part] : []))
    const asked = calls.flatMap((part) => (part.state === 'approval-requested' ? [part] : []))
    expect(asked.map(({ input }) => input)).toEqual([{ command }])
    const approved = behavior === 'allow'
    await chat.addToolApprovalResponse({ id: asked[0]!.approval.id, approved, ...(!approved && { reason }) })
    // The request that sends the decision begins later.
    const isOver = () => chat.status === 'ready' && lastTextOf(chat.messages) === answer
    await until('the rest of the answer', async () => chat.error !== undefined || isOver())
    if (chat.error) throw chat.error
  }

  async answer(conversation: Addressed, { label, answer }: QuestionAnswer): Promise<void> {
    const chat = await this.#open(conversation)
    const part = chat.messages.at(-1)!.parts.find(({ type }) => type === 'data-request')
    const { request_id } = (part as { data: { request_id: string } }).data
    const parts = [{ type: 'data-answer' as const, data: { request_id, answers: { 0: label } } }]
    await chat.sendMessage({ role: 'user', parts })
    if (chat.error) throw chat.error
    expect(lastTextOf(chat.messages)).toBe(answer)
  }

  async continueWith(conversation: Addressed, text: string): Promise<string> {
    const chat = await this.#open(conversation)
    await chat.sendMessage({ text })
    if (chat.error) throw chat.error
    return lastTextOf(chat.messages)
  }

  async finalText({ thread }: Addressed): Promise<string> {
    return lastTextOf(await storedMessages({ ...this.#place, id: thread }))
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  async #open({ thread: id }: Addressed) {
    const messages = await storedMessages({ ...this.#place, id })
    const sendAutomaticallyWhen = lastAssistantMessageIsCompleteWithApprovalResponses
    return chatOf({ ...this.#place, id, chat: { messages, sendAutomaticallyWhen } })
  }
}

/** The answer to a question continues the message that asks, and the client has what it has sent after it. */
const lastTextOf = (messages: readonly UIMessage[]): string =>
  uiTextOf(messages.findLast(({ role }) => role === 'assistant'))
    .split('|')
    .at(-1) ?? ''
