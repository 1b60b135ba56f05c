/**
 * Answers what the SDK asks while it authorizes this client at one MCP server: the client, its tokens, and where the
 * user is sent. The SDK finds the authorization server, checks its issuer, and requests tokens.
 */
import { createHash } from 'node:crypto'
import type {
  OAuthClientInformationContext,
  OAuthClientMetadata,
  OAuthClientProvider,
  OAuthDiscoveryState,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
} from '@modelcontextprotocol/client'
import type { McpOauth } from '../../contract/mcp/mcp-oauth.ts'
import { KeptAuthorization } from './kept-authorization.ts'
import type { AuthorizationStore } from './kept-authorization.ts'
import type { PendingAuthorization } from './pending-authorizations.ts'
import { createState } from './pending-authorizations.ts'

const MAX_URL_CHARS = 8192
/** Several requests may be refused at the same time, and each begins an authorization. */
const MAX_VERIFIERS = 8

/** An authorization that the user must give. */
export type RequestedAuthorization = Pick<PendingAuthorization, 'state' | 'verifier' | 'discovery'> & {
  readonly url: URL
}

export type OauthProviderOptions = {
  readonly conversationId: string
  /** The address of the MCP server. */
  readonly url: string
  /** The settings with the value of its secret. */
  readonly oauth: McpOauth
  readonly store: AuthorizationStore
  readonly redirectUrl: string
  /** The request that was made, on the way back from the authorization server. */
  readonly pending?: PendingAuthorization
  /** May throw: the address is not one that a user can be sent to. */
  readonly onRequest: (asked: RequestedAuthorization) => void
}

export class OauthProvider implements OAuthClientProvider {
  readonly #options: OauthProviderOptions
  readonly #verifiers: string[] = []
  #discovery: OAuthDiscoveryState | undefined
  /** Absent for a configured client: it is not replaced by one that is registered at another authorization server. */
  readonly saveClientInformation?: (client: StoredOAuthClientInformation) => Promise<void>

  constructor(options: OauthProviderOptions) {
    this.#options = options
    if (options.oauth.client_id === undefined)
      // Whatever the answer lists: with another address, the client would be registered again each time.
      this.saveClientInformation = async (client) =>
        await this.#keep({ client: { ...client, redirect_uris: [options.redirectUrl] } })
  }

  /** Undefined: no user is asked. */
  get redirectUrl(): string | undefined {
    return this.#isInteractive ? this.#options.redirectUrl : undefined
  }

  get clientMetadata(): OAuthClientMetadata {
    const { redirectUrl, oauth } = this.#options
    return {
      client_name: 'agent-server',
      redirect_uris: this.#isInteractive ? [redirectUrl] : [],
      grant_types: this.#isInteractive ? ['authorization_code', 'refresh_token'] : ['client_credentials'],
      response_types: this.#isInteractive ? ['code'] : [],
      ...(oauth.scope !== undefined && { scope: oauth.scope }),
    }
  }

  state(): string {
    return createState(this.#options.conversationId)
  }

  clientInformation(context?: OAuthClientInformationContext): StoredOAuthClientInformation | undefined {
    const { client_id, client_secret, issuer } = this.#options.oauth
    if (client_id === undefined) {
      const { client } = this.#kept
      // A client is registered for the address that it had then.
      return client?.redirect_uris?.includes(this.#options.redirectUrl) === false ? undefined : client
    }
    const knownIssuer = issuer ?? this.#kept.issuer ?? context?.issuer
    if (knownIssuer !== undefined && knownIssuer !== this.#kept.issuer) void this.#keep({ issuer: knownIssuer })
    return {
      client_id,
      ...(client_secret !== undefined && { client_secret }),
      ...(knownIssuer !== undefined && { issuer: knownIssuer }),
    }
  }

  tokens(): StoredOAuthTokens | undefined {
    return this.#kept.tokens
  }

  async saveTokens(tokens: StoredOAuthTokens): Promise<void> {
    await this.#keep({ tokens })
  }

  saveCodeVerifier(verifier: string): void {
    this.#verifiers.unshift(verifier)
    this.#verifiers.splice(MAX_VERIFIERS)
  }

  codeVerifier(): string {
    if (!this.#options.pending) throw new Error('no authorization was asked for')
    return this.#options.pending.verifier
  }

  saveDiscoveryState(state: OAuthDiscoveryState): void {
    this.#discovery = state
  }

  /**
   * Returns it on the way back only: otherwise the authorization server is looked up each time, as it may have changed.
   */
  discoveryState(): OAuthDiscoveryState | undefined {
    return this.#options.pending?.discovery
  }

  /** Called once an authorization is needed. Shown to users by clients: it must be the address of a page. */
  redirectToAuthorization(url: URL): void {
    const challenge = url.searchParams.get('code_challenge')
    const verifier = this.#verifiers.find((each) => challengeOf(each) === challenge)
    const state = url.searchParams.get('state')
    const isPage =
      /^https?:$/.test(url.protocol) && url.username + url.password === '' && url.href.length <= MAX_URL_CHARS
    if (!isPage || verifier === undefined || state === null || !this.#discovery)
      throw new Error('its authorization server has no address that a user can be sent to')
    this.#options.onRequest({ url, state, verifier, discovery: this.#discovery })
  }

  async invalidateCredentials(scope: 'all' | 'client' | 'tokens' | 'verifier' | 'discovery'): Promise<void> {
    if (scope === 'client' || scope === 'all') await this.#keep({ client: undefined })
    if (scope === 'tokens' || scope === 'all') await this.#keep({ tokens: undefined })
  }

  prepareTokenRequest(scope?: string): URLSearchParams | undefined {
    if (this.#isInteractive) return undefined
    return new URLSearchParams({ grant_type: 'client_credentials', ...(scope !== undefined && { scope }) })
  }

  get #isInteractive(): boolean {
    return this.#options.oauth.grant !== 'client_credentials'
  }

  get #kept(): KeptAuthorization {
    const { store, url } = this.#options
    const keptGrant = store.read()
    return keptGrant?.url === url ? keptGrant : { url }
  }

  async #keep(change: { readonly [K in keyof KeptAuthorization]?: KeptAuthorization[K] | undefined }): Promise<void> {
    await this.#options.store.write(KeptAuthorization.parse({ ...this.#kept, ...change }))
  }
}

const challengeOf = (verifier: string): string => createHash('sha256').update(verifier).digest('base64url')
