/** Hosts that commands want to reach and a user must allow. */
import type { AnswerOf } from '../../contract/request.ts'
import type { EventLog } from '../../events/event-log.ts'
import type { ConversationNetwork } from '../../workspace/network.ts'
import { findClosed } from './closed-requests.ts'
import type { EarlierAnswer, RequestHandler } from './request-handler.ts'
import type { Inbox } from '../live/inbox.ts'

export type NetworkHostsDeps = {
  readonly log: EventLog
  readonly network: ConversationNetwork
  readonly actor: Pick<Inbox, 'configure'>
}

type Answer = AnswerOf<'network'>

export class NetworkHosts implements RequestHandler<'network'> {
  readonly #deps: NetworkHostsDeps

  constructor(deps: NetworkHostsDeps) {
    this.#deps = deps
  }

  open() {
    return this.#deps.network.pending()
  }

  redact(answer: Answer): Answer {
    return answer
  }

  /** See `ConversationNetwork.decide`. A decision to be remembered changes the configuration. */
  async answer(requestId: string, decision: Answer, keyName: string | undefined): Promise<boolean> {
    const { network, actor } = this.#deps
    return await network.decide(requestId, { ...decision, keyName }, (change) =>
      actor.configure(async ({ settings }) => ({ changes: { network: change(settings.network) } })),
    )
  }

  async compare(requestId: string, { behavior }: Answer): Promise<EarlierAnswer> {
    const { log, network } = this.#deps
    await network.stored()
    const closedRequest = await findClosed(log, 'network', requestId)
    if (!closedRequest) return 'unknown'
    const [decision] = closedRequest.answers
    if (!decision) return 'none'
    return decision.answer.behavior === behavior ? 'same' : 'other'
  }
}
