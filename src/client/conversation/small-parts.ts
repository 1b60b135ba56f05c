/** The parts of a conversation with two or three operations: rules, questions, hooks, network requests, secrets, MCP servers. */
import type { BodyOf, QueryFor } from '../operations/operations.ts'
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

/** Questions that the agent asks. */
export class QuestionsClient extends Part {
  list(options?: CallOptions) {
    return listOf(() => this.api.call('listQuestions', { params: { id: this.id } }, options))
  }

  answer(question_id: string, body: BodyOf<'answerQuestion'>, options?: CallOptions) {
    return this.api.call('answerQuestion', { params: { id: this.id, question_id }, body }, options)
  }
}

/** Calls of client tools that wait for a client. */
export class ToolCallsClient extends Part {
  list(options?: CallOptions) {
    return listOf(() => this.api.call('listToolCalls', { params: { id: this.id } }, options))
  }

  /** Sends the result of a call that this client has executed. The first result counts; the same one again changes nothing. */
  answer(tool_use_id: string, body: BodyOf<'postToolResult'>, options?: CallOptions) {
    return this.api.call('postToolResult', { params: { id: this.id, tool_use_id }, body }, options)
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

/** Hooks that wait for an answer of a client. */
export class HookRequestsClient extends Part {
  list(query: QueryFor<'listHookRequests'> = {}, options?: CallOptions) {
    return listOf(() => this.api.call('listHookRequests', { params: { id: this.id }, query }, options))
  }

  /** The first answer counts; the same one again changes nothing. */
  answer(request_id: string, body: BodyOf<'answerHook'>, options?: CallOptions) {
    return this.api.call('answerHook', { params: { id: this.id, request_id }, body }, options)
  }
}

/** Connections of commands that wait for a decision. */
export class NetworkRequestsClient extends Part {
  list(options?: CallOptions) {
    return listOf(() => this.api.call('listNetworkRequests', { params: { id: this.id } }, options))
  }

  decide(request_id: string, body: BodyOf<'decideNetworkRequest'>, options?: CallOptions) {
    return this.api.call('decideNetworkRequest', { params: { id: this.id, request_id }, body }, options)
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

  /** With what the browser was sent back with, after the user has authorized the server. */
  authorize(server_name: string, body: BodyOf<'authorizeMcpServer'>, options?: CallOptions) {
    return this.api.call('authorizeMcpServer', { params: { id: this.id, server_name }, body }, options)
  }
}
