/** What clients can do with the secrets of a conversation: write values and list names. Values are never returned. */
import type { Secrets } from '../../contract/secret.ts'
import type { ConversationSecrets, SecretsChange } from './secrets.ts'
import type { IntentInbox } from '../live/inbox.ts'

export class ClientSecrets {
  readonly #secrets: ConversationSecrets
  readonly #actor: IntentInbox

  constructor(secrets: ConversationSecrets, actor: IntentInbox) {
    this.#secrets = secrets
    this.#actor = actor
  }

  names(): string[] {
    return this.#secrets.names()
  }

  /** Returns all names after the change. */
  async put(values: Secrets): Promise<string[]> {
    await this.#change(() => this.#secrets.put(values))
    return this.names()
  }

  async remove(name: string): Promise<void> {
    await this.#change(() => this.#secrets.remove(name))
  }

  /** Makes the change durable by `store`, in turn; only then is it logged. */
  async #change(store: () => Promise<SecretsChange>): Promise<void> {
    await this.#actor.enqueue(async () => {
      await this.#actor.apply({ kind: 'secrets', ...(await store()) })
    })
  }
}
