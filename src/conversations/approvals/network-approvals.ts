/**
 * The network requests of one conversation: which connections of its commands wait for a user, and how the user decides
 * them.
 */
import type { DecideNetworkRequest, NetworkDecisionAnswer, PendingNetworkRequests } from '../../contract/network.ts'
import type { ConversationActor } from '../actor.ts'
import type { ConversationNetwork } from '../../workspace/network.ts'

export class NetworkApprovals {
  readonly #network: ConversationNetwork
  readonly #actor: Pick<ConversationActor, 'configure'>

  constructor(network: ConversationNetwork, actor: Pick<ConversationActor, 'configure'>) {
    this.#network = network
    this.#actor = actor
  }

  pending(): PendingNetworkRequests {
    return this.#network.pending()
  }

  /** See `ConversationNetwork.decide`. A decision to be remembered changes the configuration. */
  async decide(id: string, decision: DecideNetworkRequest): Promise<NetworkDecisionAnswer> {
    return await this.#network.decide(id, decision, (change) =>
      this.#actor.configure(async ({ settings }) => ({ changes: { network: change(settings.network) } })),
    )
  }
}
