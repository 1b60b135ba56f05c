/** `sessions()`: what is stored, in a data directory or on a server. Each call opens the server and closes it again. */
import type { ConversationView } from '../contract/conversation.ts'
import type { Event } from '../contract/events/event.ts'
import type { BodyOf, QueryFor } from '../client/operations/operations.ts'
import type { ConversationHandle } from '../client/conversation/conversation-handle.ts'
import type { AgentServerClient } from '../client/client.ts'
import { openLink } from './local/server-link.ts'
import { checkPlace } from './options/check-options.ts'
import type { SessionPlace, Prompt, QueryOptions } from './options/query-options.ts'
import type { Query } from './query.ts'
import { query } from './query.ts'

/** Holds nothing open: it need not be closed. */
export function sessions(place: SessionPlace = {}): Sessions {
  checkPlace(place)
  return new Sessions(place)
}

export class Sessions {
  readonly #place: SessionPlace

  constructor(place: SessionPlace) {
    this.#place = place
  }

  /** All sessions, the newest first. */
  async *list(filter: QueryFor<'listConversations'> = {}): AsyncGenerator<ConversationView> {
    await using link = await openLink(this.#place)
    yield* link.client.conversations.list(filter)
  }

  get(id: string): Promise<ConversationView> {
    return this.#with((client) => client.conversation(id).get())
  }

  /** The stored events from the first on. */
  async *read(id: string, filter: Parameters<ConversationHandle['listEvents']>[0] = {}): AsyncGenerator<Event> {
    await using link = await openLink(this.#place)
    yield* link.client.conversation(id).listEvents(filter)
  }

  /** Continues the session with a message, or where it stopped. */
  resume(id: string, prompt?: Prompt, options: QueryOptions = {}): Query {
    const continuedOptions = { ...options, ...this.#place, resume: id }
    return query(prompt === undefined ? { options: continuedOptions } : { prompt, options: continuedOptions })
  }

  /** Returns the copy. */
  fork(id: string, body: BodyOf<'forkConversation'> = {}): Promise<ConversationView> {
    return this.#with((client) => client.conversation(id).fork(body))
  }

  /** Gives it another title. */
  async rename(id: string, title: string): Promise<void> {
    await this.#with((client) => client.conversation(id).updateConfig({ title }))
  }

  /** Replaces all its labels, by which `list({ label: ['…'] })` finds it. */
  async setLabels(id: string, labels: readonly string[]): Promise<void> {
    await this.#with((client) => client.conversation(id).updateConfig({ labels: [...labels] }))
  }

  /** Ends everything that runs in it and deletes it, with its directory if the server created that. */
  async delete(id: string): Promise<void> {
    await this.#with((client) => client.conversation(id).delete())
  }

  /** The stored events as lines of JSON, as in `events.jsonl`: for a file, or for another program. */
  async *export(id: string): AsyncGenerator<string> {
    for await (const event of this.read(id, { limit: 1000 })) yield `${JSON.stringify(event)}\n`
  }

  async #with<T>(work: (client: AgentServerClient) => PromiseLike<T>): Promise<T> {
    await using link = await openLink(this.#place)
    return await work(link.client)
  }
}
