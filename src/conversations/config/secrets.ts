/**
 * The secrets of one conversation while it is open: stored encrypted, redacted in all text, passed to commands and to
 * the model client.
 */
import type { LlmConfig } from '../../contract/values/llm-config.ts'
import { MAX_SECRETS } from '../../contract/secret.ts'
import type { Secrets } from '../../contract/secret.ts'
import { Problem } from '../../contract/problem.ts'
import { HookCredentials } from '../../hooks/http-hook.ts'
import { canonicalJson } from '../../lib/json/canonical-json.ts'
import { gitCredentialEnv } from '../../security/git-credentials.ts'
import type { Redactor } from '../../security/redaction/redactor.ts'
import type { McpServers } from '../../contract/mcp/mcp-server.ts'
import type { SecretSource } from '../../mcp/named-secrets.ts'
import { placesIn } from '../../mcp/named-secrets.ts'
import type { AuthorizationStore } from '../../mcp/oauth/kept-authorization.ts'
import { KeptAuthorization, secretsOf } from '../../mcp/oauth/kept-authorization.ts'
import type { Logger } from '../../telemetry/logger.ts'
import type { SecretValues } from '../../storage/storage.ts'
import type { LlmChange } from './llm-origin.ts'
import { boundTo, isFor } from './llm-origin.ts'
import { HiddenValues } from './hidden-values.ts'
import { mergeLlmSecrets } from './settings.ts'

/** Names only, no values. */
export type SecretsChange = { readonly added: readonly string[]; readonly removed: readonly string[] }

export type ConversationSecretsDeps = {
  readonly redactor: Redactor
  readonly keptValues: SecretValues
  /** Why what is stored could not be decrypted. */
  readonly locked?: Problem
  readonly write: (values: SecretValues) => Promise<void>
  readonly id: string
  readonly logger: Pick<Logger, 'error'>
}

type Values = Readonly<Record<string, string>>
type Change = { readonly env?: Values; readonly llm?: Values; readonly hooks?: Values }

/** Changes run one at a time, in turn, and are durable when they resolve. */
export class ConversationSecrets {
  readonly #write: ConversationSecretsDeps['write']
  readonly #onFault: (error: unknown) => void
  readonly #hidden: HiddenValues
  /** The problem holds until something else is stored: then it is set aside. */
  #locked: Problem | undefined
  #env: Values
  #llm: Values
  /** The values are JSON, by URL. */
  #hooks: Values
  /** Credentials in the configuration of MCP servers, by their place. */
  #mcp: Values
  /** Authorizations of MCP servers by their name, as JSON. */
  #oauth: Values
  #writing: Promise<void> = Promise.resolve()
  // The former configuration applies until the log has a change, and with it the former credentials.
  #formerLlm: Values

  constructor({ redactor, keptValues, locked, write, id, logger }: ConversationSecretsDeps) {
    this.#write = write
    this.#locked = locked
    this.#onFault = (error) =>
      logger.error({ err: error, conversation_id: id }, 'the authorization of an MCP server could not be stored')
    this.#env = keptValues['env'] ?? {}
    this.#llm = keptValues['llm'] ?? {}
    this.#mcp = keptValues['mcp'] ?? {}
    this.#oauth = keptValues['mcp_oauth'] ?? {}
    this.#formerLlm = this.#llm
    this.#hooks = keptValues['hooks'] ?? {}
    this.#hidden = new HiddenValues(redactor)
    this.#hidden.addAll(this.#env)
    this.#hidden.addLlm(this.#llm)
    this.#hidden.addHooks(this.#hooks)
    this.#hidden.addMcp(this.#mcp)
    for (const server of Object.keys(this.#oauth)) this.#hideOauth(server)
  }

  /** Throws a `Problem` if they cannot be decrypted: their names are encrypted, too. */
  names(): string[] {
    if (this.#locked) throw this.#locked
    return Object.keys(this.#env).sort()
  }

  /** Returns the model's credentials, as `settings.ts` stores them, if they belong to this origin. */
  llmFor(origin: string): Values {
    return !isFor(origin, this.#llm) && isFor(origin, this.#formerLlm) ? this.#formerLlm : this.#llm
  }

  /** Returns the environment variables of the next command, including git's configuration. */
  commandEnv(): Record<string, string> {
    return { ...this.#env, ...gitCredentialEnv(this.#env) }
  }

  /** Returns the secret and the headers of the hooks with this URL. */
  hookCredentials(url: string): HookCredentials | undefined {
    const keptText = this.#hooks[url]
    return keptText === undefined ? undefined : HookCredentials.parse(JSON.parse(keptText))
  }

  /** Adds credentials of hooks by URL, or leaves out those of other URLs than these. */
  async updateHooks(change: { readonly add: Values } | { readonly keep: ReadonlySet<string> }): Promise<void> {
    const keptEntries = Object.entries(this.#hooks)
    const next =
      'add' in change
        ? [...keptEntries, ...Object.entries(change.add)]
        : keptEntries.filter(([url]) => change.keep.has(url))
    const hooks = Object.fromEntries(next)
    if (JSON.stringify(hooks) === JSON.stringify(this.#hooks)) return
    this.#hidden.addHooks(hooks)
    await this.#store({ hooks })
  }

  /** Adds credentials in the configuration of MCP servers, by their place. */
  async addMcp(credentials: Values): Promise<void> {
    if (Object.keys(credentials).length === 0) return
    this.#mcp = { ...this.#mcp, ...credentials }
    this.#hidden.addMcp(this.#mcp)
    await this.#store({})
  }

  /** Redacts these credentials from now on, also in the other fields of the same request. */
  hideMcp(credentials: Values): void {
    this.#hidden.addMcp(credentials)
  }

  /** Deletes the credentials and authorizations of servers that are not configured any more as in `former`. */
  async keepMcp(servers: McpServers, former: McpServers = {}): Promise<void> {
    const places = placesIn(servers)
    const isAuthorized = (name: string) => {
      const [now, before] = [servers[name], former[name]]
      return now !== undefined && canonicalJson([now.url, now.oauth]) === canonicalJson([before?.url, before?.oauth])
    }
    const mcp = Object.fromEntries(Object.entries(this.#mcp).filter(([place]) => places.has(place)))
    const oauth = Object.fromEntries(Object.entries(this.#oauth).filter(([name]) => isAuthorized(name)))
    const isSame = [mcp, oauth].every((keptValue, at) => {
      return Object.keys(keptValue).length === Object.keys([this.#mcp, this.#oauth][at] ?? {}).length
    })
    if (isSame) return
    this.#mcp = mcp
    this.#oauth = oauth
    await this.#store({})
  }

  /** The source for the configuration of MCP servers. */
  get mcpSource(): SecretSource {
    return {
      secret: (name) => (Object.hasOwn(this.#env, name) ? this.#env[name] : undefined),
      credential: (place) => this.#mcp[place],
    }
  }

  /** The authorization of one MCP server. If it is not stored, it is in effect until the conversation is closed. */
  oauthOf(server: string): AuthorizationStore {
    return {
      read: () => this.#readOauth(server),
      write: async (grant) => {
        this.#oauth = { ...this.#oauth, [server]: JSON.stringify(grant) }
        this.#hideOauth(server)
        // Stored without a client's doing, it would take the place of secrets that the right key unlocks again.
        if (!this.#locked) await this.#store({}).catch(this.#onFault)
      },
    }
  }

  #readOauth(server: string): KeptAuthorization | undefined {
    const keptText = Object.hasOwn(this.#oauth, server) ? this.#oauth[server] : undefined
    return keptText === undefined ? undefined : KeptAuthorization.parse(JSON.parse(keptText))
  }

  #hideOauth(server: string): void {
    const keptGrant = this.#readOauth(server)
    if (keptGrant) this.#hidden.addOauth(server, secretsOf(keptGrant))
  }

  /** A key that is stored already changes nothing: clients send theirs again when they continue a conversation. */
  withoutStoredKey(change: LlmChange, storedLlm: LlmConfig): LlmChange {
    const { api_key, ...update } = change.update
    const isStored = storedLlm.api_key !== undefined && api_key !== undefined && api_key === this.#llm['api_key']
    return isStored && change.keepsCredentials && isFor(change.origin, this.#llm) ? { ...change, update } : change
  }

  /** Redacts these credentials from now on, also in the other fields of the same request. */
  hideLlm(update: LlmConfig): void {
    this.#hidden.addLlm(mergeLlmSecrets(this.#llm, update))
  }

  /** Merges the secrets. Returns what has changed; throws a `Problem` if there would be too many. */
  async put(secrets: Secrets): Promise<SecretsChange> {
    const next = { ...this.#env, ...secrets }
    if (Object.keys(next).length > MAX_SECRETS) {
      throw new Problem('invalid_request', `A conversation has at most ${MAX_SECRETS} secrets; delete some first.`)
    }
    const addedNames = Object.keys(secrets).filter((name) => secrets[name] !== this.#env[name])
    if (addedNames.length === 0) return { added: addedNames, removed: [] }
    this.#hidden.addAll(secrets)
    await this.#store({ env: next })
    return { added: addedNames.sort(), removed: [] }
  }

  /** Throws a `Problem` if they cannot be decrypted: nothing would be deleted. */
  async remove(name: string): Promise<SecretsChange> {
    if (this.#locked) throw this.#locked
    if (!Object.hasOwn(this.#env, name)) return { added: [], removed: [] }
    const { [name]: _, ...rest } = this.#env
    await this.#store({ env: rest })
    return { added: [], removed: [name] }
  }

  /** If the origin changes, the credentials stored for the former one are deleted. */
  async updateLlm({ update, origin, keepsCredentials }: LlmChange): Promise<void> {
    if (keepsCredentials && update.api_key === undefined && !update.extra_headers) return
    const mergedSecrets = boundTo(origin, mergeLlmSecrets(keepsCredentials ? this.#llm : {}, update))
    this.#hidden.addLlm(mergedSecrets)
    const former = this.#llm
    await this.#store({ llm: mergedSecrets })
    this.#formerLlm = former
  }

  /** Stores one change at a time: each writes all values, and those of MCP servers change at any time. */
  async #store(change: Change): Promise<void> {
    const writing = this.#writing.then(() => this.#storeNow(change))
    this.#writing = writing.catch(() => {}) // the caller handles it
    await writing
  }

  async #storeNow(change: Change): Promise<void> {
    const mcp = Object.keys(this.#mcp).length > 0 ? { mcp: this.#mcp } : {}
    const oauth = Object.keys(this.#oauth).length > 0 ? { mcp_oauth: this.#oauth } : {}
    await this.#write({ llm: this.#llm, env: this.#env, hooks: this.#hooks, ...mcp, ...oauth, ...change })
    this.#locked = undefined
    this.#env = change.env ?? this.#env
    this.#llm = change.llm ?? this.#llm
    this.#hooks = change.hooks ?? this.#hooks
  }
}
