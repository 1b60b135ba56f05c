/** A2A, by its own client. Each call finds the newest task of the context. */
import type { Task } from '@a2a-js/sdk'
import type { Client } from '@a2a-js/sdk/client'
import { expect } from 'vitest'
import { a2aClient, answerIn, askedIn, say } from '../a2a.ts'
import type { Addressed, ClientPlace, ProtocolClient, QuestionAnswer, Verdict } from './protocol-client.ts'

export class A2aClient implements ProtocolClient {
  readonly #client: Client

  private constructor(client: Client) {
    this.#client = client
  }

  static async start({ url, key }: ClientPlace): Promise<A2aClient> {
    return new A2aClient(await a2aClient(url, { key }))
  }

  async begin(text: string): Promise<Addressed> {
    const thread = crypto.randomUUID()
    const { metadata } = await say(this.#client, { text, contextId: thread, profile: 'default' })
    return { id: metadata?.['conversation_id'], thread }
  }

  async decide(conversation: Addressed, { command, behavior, reason, answer }: Verdict): Promise<void> {
    const task = await this.#newest(conversation)
    const [{ request_id, kind, tool_uses }] = askedIn(task)
    expect(tool_uses).toMatchObject([{ input: { command } }])
    const [{ tool_use_id, input_hash }] = tool_uses
    const message = behavior === 'deny' && { message: reason }
    const data = { request_id, kind, decisions: [{ tool_use_id, input_hash, behavior, ...message }] }
    expect(answerIn(await say(this.#client, { taskId: task.id, data }))).toBe(answer)
  }

  async answer(conversation: Addressed, { label, answer }: QuestionAnswer): Promise<void> {
    const task = await this.#newest(conversation)
    expect(JSON.stringify(askedIn(task))).toContain(label)
    expect(answerIn(await say(this.#client, { taskId: task.id, text: label }))).toBe(answer)
  }

  async continueWith({ thread }: Addressed, text: string): Promise<string> {
    return answerIn(await say(this.#client, { contextId: thread, text }))
  }

  async finalText(conversation: Addressed): Promise<string> {
    return answerIn(await this.#newest(conversation))
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  async #newest({ thread }: Addressed): Promise<Task> {
    const { tasks } = await this.#client.listTasks({
      tenant: '',
      contextId: thread,
      status: 0,
      pageSize: 1,
      pageToken: '',
      statusTimestampAfter: undefined,
      includeArtifacts: true,
    })
    const [task] = tasks
    if (!task) throw new Error(`the context ${thread} has no task`)
    return task
  }
}
