/** The authorization of one MCP server: who is asked for it, until when, and how it is completed. */
import type { OAuthClientProvider } from '@modelcontextprotocol/client'
import type { McpServer } from '../../contract/mcp/mcp-server.ts'
import { NEVER, withinTime } from '../../lib/bounded-wait.ts'
import type { Sdk } from '../load-sdk.ts'
import type { ShowText } from '../tools/shown-text.ts'
import type { TransportDeps } from '../transports/open-transport.ts'
import { openHttp } from '../transports/open-transport.ts'
import type { AuthorizationStore } from './kept-authorization.ts'
import type { RequestedAuthorization } from './oauth-provider.ts'
import { OauthProvider } from './oauth-provider.ts'
import type { PendingAuthorization, PendingAuthorizations } from './pending-authorizations.ts'

/** The time from the way back of the user to the tokens, in milliseconds. */
const FINISH_MS = 30_000

export type OauthDeps = {
  readonly conversationId: string
  readonly pending: PendingAuthorizations
  /** The URL that users are sent back to. */
  readonly redirectUrl: () => string
  readonly storeOf: (server: string) => AuthorizationStore
}

export class ServerAuthorization {
  readonly #name: string
  readonly #deps: OauthDeps
  readonly #show: ShowText
  #requested: { readonly url: string; readonly expiresAt: number } | undefined

  constructor(name: string, deps: OauthDeps, show: ShowText) {
    this.#name = name
    this.#deps = deps
    this.#show = show
  }

  /** The URL at which the user authorizes, while that is possible. */
  get url(): string | undefined {
    return this.#requested && this.#requested.expiresAt > performance.now() ? this.#requested.url : undefined
  }

  /** Returns true if a user was asked, also if the time is over. */
  get isRequested(): boolean {
    return this.#requested !== undefined
  }

  forget(): void {
    this.#requested = undefined
  }

  /** Undefined if the server is not authorized in this way. `server` with the values of its secrets. */
  providerFor(server: McpServer): OAuthClientProvider | undefined {
    const { url, headers = {}, transport } = server
    if (transport === 'stdio' || url === undefined || 'authorization' in lowerCased(headers)) return undefined
    return this.#create(server, url)
  }

  /** Requests the tokens. Rejects with the reason; the code cannot be used again then. */
  async finish(
    sdk: Sdk,
    { server, deps }: { readonly server: McpServer; readonly deps: TransportDeps },
    { pending, answer }: { readonly pending: PendingAuthorization; readonly answer: URLSearchParams },
  ): Promise<void> {
    await withinTime(FINISH_MS, NEVER, async (signal) => {
      const { url } = server
      if (url !== pending.url) throw new Error('the address of the server has changed')
      const provider = this.#create(server, url, pending)
      await openHttp(sdk, { server, deps, signal, provider }).finishAuth(answer)
    })
  }

  #create(server: McpServer, url: string, pending?: PendingAuthorization): OAuthClientProvider {
    const { storeOf, redirectUrl: current, conversationId } = this.#deps
    const redirectUrl = pending?.redirectUrl ?? current()
    return new OauthProvider({
      conversationId,
      url,
      oauth: server.oauth ?? {},
      store: storeOf(this.#name),
      redirectUrl,
      ...(pending && { pending }),
      onRequest: (request) => {
        // The state of one that failed is not valid any more; the connection asks again.
        if (!pending) this.#request(request, url, redirectUrl)
      },
    })
  }

  #request({ url, state, verifier, discovery }: RequestedAuthorization, server: string, redirectUrl: string): void {
    const { href } = url
    // It is stored and shown, and its server may know secrets of the conversation.
    if (this.#show(href, href.length) !== href)
      throw new Error('the address of its authorization page has a secret in it')
    const { pending, conversationId } = this.#deps
    const request = { conversationId, server: this.#name, url: server, state, verifier, redirectUrl, discovery }
    this.#requested = { url: href, expiresAt: pending.add(request).expiresAt }
  }
}

const lowerCased = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
