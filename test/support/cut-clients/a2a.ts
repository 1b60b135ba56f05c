/** A2A by its own client, which subscribes to its task when it comes back. */
import type { StreamResponse, Task } from '@a2a-js/sdk'
import type { Client } from '@a2a-js/sdk/client'
import { a2aClient, answerIn, follow, says } from '../a2a.ts'
import type { ProtocolClient } from '../protocol-clients.ts'
import type { TestServer } from '../server.ts'

export class A2aCutClient implements ProtocolClient {
  readonly #url: string
  readonly #contextId: string
  readonly #tasks: Task[] = []
  #message = says({ text: '' })
  /** The task of the message that was sent last. */
  #task: Task | undefined
  #isLost = false

  constructor({ url }: TestServer, contextId: string) {
    this.#url = url
    this.#contextId = contextId
  }

  async say(text: string, onEvent?: () => void): Promise<void> {
    this.#message = says({ text, contextId: this.#contextId, profile: 'coder' })
    this.#keep()
    await this.#follow((client) => client.sendMessageStream(this.#message), onEvent)
  }

  leave(): void {
    this.#isLost = true
  }

  async comeBack(): Promise<void> {
    const { id } = this.#task ?? {}
    if (id === undefined) return await this.#follow((client) => client.sendMessageStream(this.#message))
    await this.#follow((client) => client.resubscribeTask({ tenant: '', id }))
    // A task that has ended has no subscribers.
    this.#task = await this.#read(id)
  }

  async stop(): Promise<void> {
    const client = await a2aClient(this.#url)
    await client.cancelTask({ tenant: '', id: this.#task!.id, metadata: undefined }).catch((error: unknown) => {
      if (!String(error).includes('has ended')) throw error
    })
  }

  shown(): readonly unknown[] {
    return this.#all().map(plain)
  }

  async stored(): Promise<readonly unknown[]> {
    return (await Promise.all(this.#all().map(({ id }) => this.#read(id)))).map(plain)
  }

  answer(): string {
    return this.#task ? answerIn(this.#task) : ''
  }

  #all(): Task[] {
    return [...this.#tasks, ...(this.#task ? [this.#task] : [])]
  }

  #keep(): void {
    if (this.#task) this.#tasks.push(this.#task)
    this.#task = undefined
  }

  async #read(id: string): Promise<Task> {
    return await (await a2aClient(this.#url)).getTask({ tenant: '', id })
  }

  /** Its errors are those of a lost connection: the client comes back. */
  async #follow(open: (client: Client) => AsyncIterable<StreamResponse>, onEvent?: () => void): Promise<void> {
    this.#isLost = false
    try {
      await follow(open(await a2aClient(this.#url)), (task) => {
        this.#task = task
        onEvent?.()
        return this.#isLost
      })
    } catch {
      // What it has is compared with what is stored.
    }
  }
}

const plain = (task: Task) => ({ id: task.id, status: task.status, answer: answerIn(task) })
