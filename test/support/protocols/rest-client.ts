/** The API of the server, by its typed client. */
import { expect } from 'vitest'
import type { AgentServerClient } from '../../../src/client/client.ts'
import { createClient } from '../../../src/client/client.ts'
import type { Addressed, ClientPlace, ProtocolClient, QuestionAnswer, Verdict } from './protocol-client.ts'

export class RestClient implements ProtocolClient {
  readonly #client: AgentServerClient

  constructor({ url, key }: ClientPlace) {
    this.#client = createClient({ baseUrl: url, apiKey: key })
  }

  async begin(text: string): Promise<Addressed> {
    const tools = ['Bash', 'AskUserQuestion']
    const body = { permission_mode: 'default', tools, initial_message: text, run: true, wait: true } as const
    const { id } = await this.#client.conversations.create(body)
    return { id, thread: id }
  }

  async decide({ id }: Addressed, { command, behavior, reason, answer }: Verdict): Promise<void> {
    const conversation = this.#client.conversation(id)
    const [request, ...others] = (await conversation.requests.list()).items
    if (request?.kind !== 'permission' || others.length > 0) throw new Error('not one permission is waited for')
    expect(request.payload.tool_uses.map(({ input }) => input)).toEqual([{ command }])
    if (behavior === 'allow') await conversation.requests.allow(request)
    else await conversation.requests.deny(request, { message: reason })
    expect((await conversation.wait()).result?.final_text).toBe(answer)
  }

  async answer({ id }: Addressed, { label, answer }: QuestionAnswer): Promise<void> {
    const conversation = this.#client.conversation(id)
    const [request] = (await conversation.requests.list({ kinds: ['question'] })).items
    await conversation.requests.answer(request!.request_id, { kind: 'question', answers: { 0: label } })
    expect((await conversation.wait()).result?.final_text).toBe(answer)
  }

  async continueWith({ id }: Addressed, text: string): Promise<string> {
    return (await this.#client.conversation(id).sendAndWait(text)).result?.final_text ?? ''
  }

  async finalText({ id }: Addressed): Promise<string> {
    const types = ['AssistantMessage'] as const
    const { items } = await this.#client.conversation(id).listEvents({ types, order: 'desc', limit: 1 })
    const [last] = items
    if (last?.type !== 'AssistantMessage') return ''
    return last.content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('')
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}
