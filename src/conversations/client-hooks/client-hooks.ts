/** The clients that answer hooks of a conversation: registered, listed and removed. The log has who is registered. */
import type { ClientHooksView, PutClientHooks, StoredClientHooks } from '../../contract/hooks/client-hooks.ts'
import { MAX_HOOK_CLIENTS } from '../../contract/hooks/client-hooks.ts'
import { Problem } from '../../contract/problem.ts'
import type { RequestSource } from '../../events/request-record.ts'
import { canonicalJson } from '../../lib/json/canonical-json.ts'
import { refuseSecretsIn } from '../../security/refuse-secrets.ts'
import type { LiveState } from '../live/live-state.ts'
import { inOrder } from './registered-hooks.ts'
import type { WaitingHooks } from './waiting-hooks.ts'
import type { Inbox } from '../live/inbox.ts'

export type ClientHooksDeps = {
  readonly state: LiveState
  readonly waiting: WaitingHooks
  readonly redact: (text: string) => string
  readonly actor: Pick<Inbox, 'configure'>
}

export class ClientHooks {
  readonly #deps: ClientHooksDeps

  constructor(deps: ClientHooksDeps) {
    this.#deps = deps
  }

  list(): { items: ClientHooksView[] } {
    return { items: inOrder(this.#registered).map(([client]) => this.#viewOf(client)) }
  }

  /** Replaces all hooks of the client. Those of other clients stay. Requests that wait can still be answered. */
  async register(client: string, { hooks }: PutClientHooks): Promise<ClientHooksView> {
    const { actor, redact } = this.#deps
    refuseSecretsIn({ client, hooks }, redact)
    await actor.configure(async ({ settings: { client_hooks: before = {} } }) => {
      const knownHooks = Object.hasOwn(before, client) ? before[client] : undefined
      if (knownHooks && canonicalJson(knownHooks.hooks) === canonicalJson(hooks)) return { changes: {} }
      if (!knownHooks && Object.keys(before).length >= MAX_HOOK_CLIENTS) throw tooMany()
      const registration = { hooks, registered_at: timeAfter(before) }
      return { changes: { client_hooks: { ...before, [client]: registration } } }
    })
    return this.#viewOf(client)
  }

  /** Idempotent. Requests to the client that wait have failed. */
  async remove(client: string): Promise<void> {
    const { actor, waiting } = this.#deps
    await actor.configure(async ({ settings: { client_hooks: before = {} } }) => {
      if (!Object.hasOwn(before, client)) return { changes: {} }
      const { [client]: _, ...client_hooks } = before
      return { changes: { client_hooks }, after: async () => waiting.drop(client) }
    })
  }

  /** Returns the source of the requests that a stream of this client sends. Throws a `Problem` for a client without hooks. */
  requestsTo(client: string): RequestSource {
    if (!Object.hasOwn(this.#registered, client)) throw notFound(client)
    return this.#deps.waiting.requestsTo(client)
  }

  get #registered(): StoredClientHooks {
    return this.#deps.state.current.settings.client_hooks ?? {}
  }

  #viewOf(client: string): ClientHooksView {
    const { hooks, registered_at } = this.#registered[client] ?? { hooks: {}, registered_at: new Date(0).toISOString() }
    const { waiting } = this.#deps
    const calls_waiting = waiting.expectedBy(client)
    return { client, hooks, registered_at, connected: waiting.isConnected(client), calls_waiting }
  }
}

/** Each registration has another time, because the order of the clients depends on it. */
function timeAfter(before: StoredClientHooks): string {
  const times = Object.values(before).map(({ registered_at }) => Date.parse(registered_at) + 1)
  return new Date(Math.max(Date.now(), ...times)).toISOString()
}

const notFound = (client: string) =>
  new Problem(
    'client_hooks_not_found',
    `The client ${client} has no hooks in this conversation. Register them with PUT client-hooks/${client}.`,
  )

const tooMany = () =>
  new Problem(
    'invalid_request',
    `A conversation has at most ${MAX_HOOK_CLIENTS} clients that answer hooks. Remove those that are gone: GET client-hooks shows who is connected.`,
  )
