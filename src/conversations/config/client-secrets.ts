/** What clients may do with the secrets of a conversation. Values go in, only names come out. */
import type { Secrets } from '../../contract/secret.ts'
import type { ConversationActor } from '../actor.ts'
import type { ConversationSecrets, SecretsChange } from './secrets.ts'

export class ClientSecrets {
  readonly #secrets: ConversationSecrets
  readonly #actor: Pick<ConversationActor, 'inTurn' | 'apply'>

  constructor(secrets: ConversationSecrets, actor: Pick<ConversationActor, 'inTurn' | 'apply'>) {
    this.#secrets = secrets
    this.#actor = actor
  }

  names(): string[] {
    return this.#secrets.names()
  }

  /** Returns the names there are then. */
  async put(values: Secrets): Promise<string[]> {
    await this.#change(() => this.#secrets.put(values))
    return this.names()
  }

  async remove(name: string): Promise<void> {
    await this.#change(() => this.#secrets.remove(name))
  }

  /** `store` makes the change durable, in turn; only then the log has it. */
  async #change(store: () => Promise<SecretsChange>): Promise<void> {
    await this.#actor.inTurn(async () => {
      await this.#actor.apply({ kind: 'secrets', ...(await store()) })
    })
  }
}
