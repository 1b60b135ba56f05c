/** The parts of a conversation with two or three operations: rules, hooks, secrets, MCP servers, git. */
import type { BodyOf, QueryFor } from '../operations/operations.ts'
import type { CallOptions } from '../request/api.ts'
import { listOf } from '../request/list.ts'
import { ConversationPart } from './part.ts'

export class PermissionRulesClient extends ConversationPart {
  get(options?: CallOptions) {
    return this.api.call('listPermissionRules', { params: { id: this.id } }, options)
  }

  replace(body: BodyOf<'replacePermissionRules'>, options?: CallOptions) {
    return this.api.call('replacePermissionRules', { params: { id: this.id }, body }, options)
  }
}

/** Hooks that clients answer, by the name of the client. */
export class ClientHooksClient extends ConversationPart {
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
export class SecretsClient extends ConversationPart {
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

export class McpServersClient extends ConversationPart {
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

/** The user's own git repository in the workdir. */
export class GitClient extends ConversationPart {
  /** Returns the branch and one page of the files that are not as in the commit of HEAD. */
  status(query?: QueryFor<'getGitStatus'>, options?: CallOptions) {
    return this.api.call('getGitStatus', { params: { id: this.id }, query }, options)
  }

  /** Returns one page of the files that differ from a commit, with their patches. */
  diff(query?: QueryFor<'getGitDiff'>, options?: CallOptions) {
    return this.api.call('getGitDiff', { params: { id: this.id }, query }, options)
  }

  /** Downloads a file of a commit. */
  file(query: QueryFor<'getGitFile'>, options: CallOptions = {}): Promise<Response> {
    return this.api.send('getGitFile', { params: { id: this.id }, query }, options, asResponse)
  }
}

const asResponse = (response: Response): Response => response
