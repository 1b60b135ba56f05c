/** The parts of a conversation with two or three operations: rules, hooks, secrets, MCP servers. */
import type { BodyOf } from '../operations/operations.ts'
import type { Api, CallOptions } from '../request/api.ts'
import { listOf } from '../request/list.ts'

/** What the classes below share. */
class Part {
  protected readonly api: Api
  protected readonly id: string

  constructor(api: Api, id: string) {
    this.api = api
    this.id = id
  }
}

export class PermissionRulesClient extends Part {
  get(options?: CallOptions) {
    return this.api.call('listPermissionRules', { params: { id: this.id } }, options)
  }

  replace(body: BodyOf<'replacePermissionRules'>, options?: CallOptions) {
    return this.api.call('replacePermissionRules', { params: { id: this.id }, body }, options)
  }
}

/** Hooks that clients answer, by the name of the client. */
export class ClientHooksClient extends Part {
  list(options?: CallOptions) {
    return listOf(() => this.api.call('listClientHooks', { params: { id: this.id } }, options))
  }

  /** Registers hooks, in place of all that this client had. It is asked in `events({ hook_client })`. */
  register(client: string, body: BodyOf<'putClientHooks'>, options?: CallOptions) {
    return this.api.call('putClientHooks', { params: { id: this.id, client }, body }, options)
  }

  remove(client: string, options?: CallOptions) {
    return this.api.call('deleteClientHooks', { params: { id: this.id, client } }, options)
  }
}

/** Environment variables of commands whose values are never returned. */
export class SecretsClient extends Part {
  put(body: BodyOf<'putSecrets'>, options?: CallOptions) {
    return this.api.call('putSecrets', { params: { id: this.id }, body }, options)
  }

  /** Lists the names. */
  list(options?: CallOptions) {
    return listOf(() => this.api.call('listSecrets', { params: { id: this.id } }, options))
  }

  delete(key: string, options?: CallOptions) {
    return this.api.call('deleteSecret', { params: { id: this.id, key } }, options)
  }
}

export class McpServersClient extends Part {
  list(options?: CallOptions) {
    return listOf(() => this.api.call('listMcpServers', { params: { id: this.id } }, options))
  }

  reconnect(server_name: string, options?: CallOptions) {
    return this.api.call('reconnectMcpServer', { params: { id: this.id, server_name } }, options)
  }

  /** Sends what the browser brought back after the user has authorized the server. */
  authorize(server_name: string, body: BodyOf<'authorizeMcpServer'>, options?: CallOptions) {
    return this.api.call('authorizeMcpServer', { params: { id: this.id, server_name }, body }, options)
  }
}
