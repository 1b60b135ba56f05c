/** The client of the REST API, for browsers, Node, Deno and Bun: `createClient`, and the types that its users name. */
import type { EventType } from '../contract/events/event.ts'
import { ConversationHandle } from './conversation/conversation-handle.ts'
import type { FirehoseItem, FirehoseOptions } from './events/event-streams.ts'
import { firehoseEvents } from './events/event-streams.ts'
import type { StreamSource } from './events/stream-source.ts'
import { httpStreamSource } from './events/stream-source.ts'
import type { BodyOf, QueryFor } from './operations/operations.ts'
import type { CallOptions } from './request/api.ts'
import { Api, textOf } from './request/api.ts'
import { listOf } from './request/list.ts'
import type { TransportOptions } from './request/transport.ts'
import { Transport } from './request/transport.ts'

export type { Event, EventOf, EventType } from '../contract/events/event.ts'
export type { HookFrame, HookRequest, HookRequestEnded } from '../contract/hooks/client-hooks.ts'
export type { AssistantDelta, TransientEvent } from '../contract/events/transient-event.ts'
export type { UserInput } from '../contract/values/message.ts'
export type { AgentServerErrorCode } from './request/agent-server-error.ts'
export { AgentServerError } from './request/agent-server-error.ts'
export type { FileContent, NewFile } from './conversation/files.ts'
export type { AskedPermission } from './conversation/requests.ts'
export type { RunSummary } from './conversation/wait-for-end.ts'
export type { EventsOptions, FirehoseItem, FirehoseOptions, StreamedEvent } from './events/event-streams.ts'
export type { StreamFrame, StreamRequest, StreamSource } from './events/stream-source.ts'
export type { BodyOf, OperationId, QueryFor, ReplyOf } from './operations/operations.ts'
export type { CallOptions } from './request/api.ts'
export type { List } from './request/list.ts'
export type { WebhookDelivery } from './webhook/verify-webhook.ts'
export { verifyWebhook } from './webhook/verify-webhook.ts'
export type { WebSocketSourceOptions } from './events/web-socket-source.ts'
export { webSocketSource } from './events/web-socket-source.ts'
export { ConversationHandle }

export type ClientOptions = TransportOptions & {
  /** Opens event streams in another way than with `fetch`. */
  readonly streamSource?: StreamSource | undefined
}

export function createClient(options: ClientOptions): AgentServerClient {
  return new AgentServerClient(options)
}

/** Bodies and replies have the field names of the wire. Every method throws `AgentServerError`. */
export class AgentServerClient {
  readonly conversations: ConversationsClient
  readonly keys: KeysClient
  readonly profiles: ProfilesClient
  readonly logins: LoginsClient
  readonly replays: ReplaysClient
  /** Typed calls of any operation by its id. */
  readonly api: Api
  readonly #source: StreamSource

  constructor({ streamSource, ...options }: ClientOptions) {
    const transport = new Transport(options)
    this.api = new Api(transport)
    this.#source = streamSource ?? httpStreamSource(transport)
    this.conversations = new ConversationsClient(this.api)
    this.keys = new KeysClient(this.api)
    this.profiles = new ProfilesClient(this.api)
    this.logins = new LoginsClient(this.api)
    this.replays = new ReplaysClient(this.api)
  }

  /** Returns a handle without a request. */
  conversation(id: string): ConversationHandle {
    return new ConversationHandle(this.api, this.#source, id)
  }

  /** Checks that the process answers. */
  alive(options?: CallOptions) {
    return this.api.call('alive', {}, options)
  }

  /** Returns when the server is ready; throws `unavailable` while it starts or stops for longer than the retries last. */
  ready(options?: CallOptions) {
    return this.api.call('ready', {}, options)
  }

  /** Returns the version, the tools, the isolation and the limits of the server. */
  info(options?: CallOptions) {
    return this.api.call('info', {}, options)
  }

  /** Returns how many runs work or wait, and how many streams are open. */
  activity(options?: CallOptions) {
    return this.api.call('activity', {}, options)
  }

  /** Returns what the key of this client allows. */
  me(options?: CallOptions) {
    return this.api.call('me', {}, options)
  }

  /** Lists models with their limits and prices. */
  models(query: QueryFor<'listModels'> = {}, options?: CallOptions) {
    return listOf((page_id = query.page_id) => this.api.call('listModels', { query: { ...query, page_id } }, options))
  }

  /** Sums what answers of models took and cost. */
  usage(query?: QueryFor<'getUsage'>, options?: CallOptions) {
    return this.api.call('getUsage', { query }, options)
  }

  /** Returns the metrics in the text format of Prometheus. */
  metrics(options: CallOptions = {}): Promise<string> {
    return this.api.send('metrics', {}, options, textOf)
  }

  /** Returns the OpenAPI document. */
  openapi(options?: CallOptions): Promise<unknown> {
    return this.api.call('openapi', {}, options)
  }

  /** Returns the AsyncAPI document. */
  asyncapi(options?: CallOptions): Promise<unknown> {
    return this.api.call('asyncapi', {}, options)
  }

  /** Returns a ticket with which a browser opens one stream without the key. */
  createStreamTicket(body: BodyOf<'createStreamTicket'>, options?: CallOptions) {
    return this.api.call('createStreamTicket', { body }, options)
  }

  /**
   * Follows the events of all conversations, over lost connections and restarts of the server. Without `cursor` it
   * begins with new events; give the cursor of the last event to continue after it.
   */
  firehose<T extends EventType = EventType>(options: FirehoseOptions<T> = {}): AsyncGenerator<FirehoseItem<T>> {
    const { maxRetries } = this.api.transport
    return firehoseEvents({ source: this.#source, maxRetries }, options)
  }
}

export class ConversationsClient {
  readonly #api: Api

  constructor(api: Api) {
    this.#api = api
  }

  create(body: BodyOf<'createConversation'> = {}, options?: CallOptions) {
    return this.#api.call('createConversation', { body }, options)
  }

  list(query: QueryFor<'listConversations'> = {}, options?: CallOptions) {
    return listOf((page_id = query.page_id) =>
      this.#api.call('listConversations', { query: { ...query, page_id } }, options),
    )
  }

  /** Lists them as short rows: what a page of conversations shows. */
  summaries(query: QueryFor<'listConversationSummaries'> = {}, options?: CallOptions) {
    return listOf((page_id = query.page_id) =>
      this.#api.call('listConversationSummaries', { query: { ...query, page_id } }, options),
    )
  }

  /** Lists events with words, of all conversations, the newest first. */
  search(query: QueryFor<'searchEvents'>, options?: CallOptions) {
    return listOf((page_id = query.page_id) =>
      this.#api.call('searchEvents', { query: { ...query, page_id } }, options),
    )
  }

  count(query?: QueryFor<'countConversations'>, options?: CallOptions) {
    return this.#api.call('countConversations', { query }, options)
  }

  /** Lists the callbacks of all conversations, with what failed. */
  callbacks(query: QueryFor<'listAllCallbacks'> = {}, options?: CallOptions) {
    return listOf((page_id = query.page_id) =>
      this.#api.call('listAllCallbacks', { query: { ...query, page_id } }, options),
    )
  }

  /** Lists what waits in all conversations, the oldest first. */
  requests(query: QueryFor<'listAllRequests'> = {}, options?: CallOptions) {
    return listOf((page_id = query.page_id) =>
      this.#api.call('listAllRequests', { query: { ...query, page_id } }, options),
    )
  }
}

/** Work that is done once more in forks, to be compared. */
export class ReplaysClient {
  readonly #api: Api

  constructor(api: Api) {
    this.#api = api
  }

  create(body: BodyOf<'createReplay'>, options?: CallOptions) {
    return this.#api.call('createReplay', { body }, options)
  }

  /** Lists them without their tables, the newest first. */
  list(query: QueryFor<'listReplays'> = {}, options?: CallOptions) {
    return listOf((page_id = query.page_id) => this.#api.call('listReplays', { query: { ...query, page_id } }, options))
  }

  get(replay_id: string, options?: CallOptions) {
    return this.#api.call('getReplay', { params: { replay_id } }, options)
  }

  /** Resolves when all forks have ended. */
  cancel(replay_id: string, options?: CallOptions) {
    return this.#api.call('cancelReplay', { params: { replay_id } }, options)
  }
}

/** Logins: how a page in a browser uses a key without keeping it. */
export class LoginsClient {
  readonly #api: Api

  constructor(api: Api) {
    this.#api = api
  }

  /** Sets a cookie, and returns the other half of the login: send it as the header `X-Login`. */
  create(body: BodyOf<'createLogin'>, options?: CallOptions) {
    return this.#api.call('createLogin', { body }, options)
  }

  list(options?: CallOptions) {
    return listOf(() => this.#api.call('listLogins', {}, options))
  }

  /** Ends the login and its streams. */
  delete(login_id: string, options?: CallOptions) {
    return this.#api.call('deleteLogin', { params: { login_id } }, options)
  }

  /** Returns a one-time code for a login with the key of this client. */
  createCode(options?: CallOptions) {
    return this.#api.call('createLoginCode', {}, options)
  }
}

/** The API keys of the server; only with the master key or the scope `admin`. */
export class KeysClient {
  readonly #api: Api

  constructor(api: Api) {
    this.#api = api
  }

  /** Returns the key, which is returned only once. */
  create(body: BodyOf<'createKey'>, options?: CallOptions) {
    return this.#api.call('createKey', { body }, options)
  }

  list(options?: CallOptions) {
    return listOf(() => this.#api.call('listKeys', {}, options))
  }

  get(key_id: string, options?: CallOptions) {
    return this.#api.call('getKey', { params: { key_id } }, options)
  }

  /** Replaces the key; the previous one stays valid for a while. */
  rotate(key_id: string, body?: BodyOf<'rotateKey'>, options?: CallOptions) {
    return this.#api.call('rotateKey', { params: { key_id }, body }, options)
  }

  /** Revokes the key. */
  delete(key_id: string, options?: CallOptions) {
    return this.#api.call('deleteKey', { params: { key_id } }, options)
  }
}

/** The profiles of the server; to change them, the key needs the scope `admin`. */
export class ProfilesClient {
  readonly #api: Api

  constructor(api: Api) {
    this.#api = api
  }

  /** Returns the names and descriptions of those that the key may use. */
  list(options?: CallOptions) {
    return listOf(() => this.#api.call('listProfiles', {}, options))
  }

  /** Returns one with masked secrets. */
  get(name: string, options?: CallOptions) {
    return this.#api.call('getProfile', { params: { name } }, options)
  }

  /** Stores it, or replaces it as a whole. */
  put(name: string, body: BodyOf<'putProfile'>, options?: CallOptions) {
    return this.#api.call('putProfile', { params: { name }, body }, options)
  }

  delete(name: string, options?: CallOptions) {
    return this.#api.call('deleteProfile', { params: { name } }, options)
  }
}
