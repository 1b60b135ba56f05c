/** One conversation as a client sees it: its messages, runs and events. The folder has one file for each other part. */
import type { EventOf, EventType } from '../../contract/events/event.ts'
import type { TransientEvent } from '../../contract/events/transient-event.ts'
import type { UserInput } from '../../contract/values/message.ts'
import type { RunOutcome, RunStarted } from '../../contract/run.ts'
import type { z } from 'zod'
import { AgentServerError } from '../request/agent-server-error.ts'
import type { EventsOptions, StreamedEvent } from '../events/event-streams.ts'
import { eventsOf } from '../events/event-streams.ts'
import type { StreamSource } from '../events/stream-source.ts'
import type { BodyOf, QueryFor, ReplyOf } from '../operations/operations.ts'
import type { Api, CallOptions } from '../request/api.ts'
import { listOf } from '../request/list.ts'
import { CallbacksClient } from './callbacks.ts'
import { CommandsClient } from './client-commands.ts'
import { FilesClient } from './files.ts'
import { ClientHooksClient, GitClient, McpServersClient, PermissionRulesClient, SecretsClient } from './small-parts.ts'
import { ProcessesClient, ShellSessionsClient } from './processes.ts'
import { RequestsClient } from './requests.ts'
import { TasksClient } from './tasks.ts'
import type { RunSummary } from './wait-for-end.ts'
import { END_TYPES, latestEnd, outcomeIn } from './wait-for-end.ts'

type ListEventsQuery<T extends EventType> = Omit<QueryFor<'listEvents'>, 'types'> & { readonly types?: readonly T[] }
type EventPage<T extends EventType> = { readonly items: EventOf<T>[]; readonly next_page_id: string | null }

type End = { readonly after: number; readonly runId?: string; readonly signal: AbortSignal | undefined }

export class ConversationHandle {
  readonly id: string
  readonly callbacks: CallbacksClient
  readonly clientHooks: ClientHooksClient
  readonly commands: CommandsClient
  readonly files: FilesClient
  readonly git: GitClient
  readonly mcp: McpServersClient
  readonly permissionRules: PermissionRulesClient
  readonly processes: ProcessesClient
  readonly requests: RequestsClient
  readonly secrets: SecretsClient
  readonly shellSessions: ShellSessionsClient
  readonly tasks: TasksClient
  readonly #api: Api
  readonly #source: StreamSource

  /** Sends nothing: the conversation need not exist yet. */
  constructor(api: Api, source: StreamSource, id: string) {
    this.id = id
    this.#api = api
    this.#source = source
    this.callbacks = new CallbacksClient(api, id)
    this.clientHooks = new ClientHooksClient(api, id)
    this.commands = new CommandsClient(api, id)
    this.files = new FilesClient(api, id)
    this.git = new GitClient(api, id)
    this.mcp = new McpServersClient(api, id)
    this.permissionRules = new PermissionRulesClient(api, id)
    this.processes = new ProcessesClient(api, id)
    this.requests = new RequestsClient(api, id)
    this.secrets = new SecretsClient(api, id)
    this.shellSessions = new ShellSessionsClient(api, id)
    this.tasks = new TasksClient(api, id)
  }

  get(options?: CallOptions) {
    return this.#api.call('getConversation', { params: this }, options)
  }

  /** Ends everything that runs in it and deletes it, with the workdir if the server created that. */
  delete(options?: CallOptions) {
    return this.#api.call('deleteConversation', { params: this }, options)
  }

  /** Returns the new conversation. */
  fork(body?: BodyOf<'forkConversation'>, options?: CallOptions) {
    return this.#api.call('forkConversation', { params: this, body }, options)
  }

  /** Changes the fields that are given. */
  updateConfig(body: BodyOf<'updateConfig'>, options?: CallOptions) {
    return this.#api.call('updateConfig', { params: this, body }, options)
  }

  /** Returns the model, the system prompt and the tools of the agent. */
  agentInfo(options?: CallOptions) {
    return this.#api.call('getAgentInfo', { params: this }, options)
  }

  /** Posts a message. Starts the agent only with `run: true`. */
  postMessage(body: BodyOf<'postMessage'>, options?: CallOptions) {
    return this.#api.call('postMessage', { params: this, body }, options)
  }

  /** Takes a message back that the agent has not read, and returns it. `messageId` is the `event_id` that posting it returned. */
  withdrawMessage(messageId: string, options?: CallOptions) {
    return this.#api.call('withdrawMessage', { params: { id: this.id, message_id: messageId } }, options)
  }

  /**
   * Takes the conversation back to the event `to_seq`. `last_seq` is what the client knows: if events follow, it throws
   * `conversation_changed`. With `dry_run`, nothing changes, and the answer says what would.
   */
  rewind(body: BodyOf<'rewindConversation'>, query: { readonly dry_run?: boolean } = {}, options?: CallOptions) {
    return this.#api.call('rewindConversation', { params: this, body, query }, options)
  }

  /** Stops a subagent in the background, and returns when it has ended. `SubagentStart` has its `agent_id`. */
  stopSubagent(agentId: string, options?: CallOptions) {
    return this.#api.call('stopSubagent', { params: { id: this.id, agent_id: agentId } }, options)
  }

  /** Posts a message and starts the agent; an active run reads it. */
  send(content: UserInput['content'], options?: CallOptions) {
    return this.postMessage({ message: { role: 'user', content }, run: true }, options)
  }

  /** Posts a message and returns when the run has ended or waits for a user. */
  async sendAndWait(content: UserInput['content'], options: CallOptions = {}): Promise<RunSummary> {
    const { seq } = await this.send(content, options)
    return await this.#end({ after: seq, signal: options.signal })
  }

  /**
   * Starts the agent. With `wait` the response is sent when the run has ended, which proxies may not wait for:
   * `runAndWait` works without such a request.
   */
  run<const Body extends BodyOf<'runConversation'> = {}>(
    body?: Body,
    options?: CallOptions,
  ): Promise<Body extends { wait: true } ? RunOutcome : z.output<typeof RunStarted>>
  run(body?: BodyOf<'runConversation'>, options?: CallOptions): Promise<ReplyOf<'runConversation'>> {
    return this.#api.call('runConversation', { params: this, body }, options)
  }

  /** Starts the agent and returns when the run has ended or waits for a user. */
  async runAndWait(
    body?: Omit<BodyOf<'runConversation'>, 'wait' | 'timeout'>,
    options: CallOptions = {},
  ): Promise<RunSummary> {
    const { last_seq } = await this.get(options)
    const { run_id } = await this.run(body, options)
    return await this.#end({ after: last_seq, runId: run_id, signal: options.signal })
  }

  /** Returns when the conversation is not running: at once if nothing runs, and then with the end of the last run. */
  async wait(options: CallOptions = {}): Promise<RunSummary> {
    const { status, last_seq } = await this.get(options)
    if (status === 'running') return await this.#end({ after: last_seq, signal: options.signal })
    const newestFirst = { types: END_TYPES, order: 'desc', active: true, limit: 20 } as const
    return { status, ...(await latestEnd(this.listEvents(newestFirst, options))) }
  }

  /** Stops the active run. With `interrupt` also its running tool. */
  pause(body?: BodyOf<'pauseConversation'>, options?: CallOptions) {
    return this.#api.call('pauseConversation', { params: this, body }, options)
  }

  /**
   * Announces for 30 seconds that a person has the conversation open: it is shown as `attended`. `clientId`: a UUID that the
   * program has chosen for itself.
   */
  attend(clientId: string, options?: CallOptions) {
    return this.#api.call('announceAttendance', { params: { id: this.id, client_id: clientId } }, options)
  }

  /** Withdraws the announcement. */
  leave(clientId: string, options?: CallOptions) {
    return this.#api.call('endAttendance', { params: { id: this.id, client_id: clientId } }, options)
  }

  /** Replaces earlier events by a summary in what the model reads. */
  compact(body?: BodyOf<'compactConversation'>, options?: CallOptions) {
    return this.#api.call('compactConversation', { params: this, body }, options)
  }

  /** Denies every call that waits, closes every question, and ends the run. */
  reject(body?: BodyOf<'reject'>, options?: CallOptions) {
    return this.#api.call('reject', { params: this, body }, options)
  }

  /** Sets whether tool calls wait for a decision. */
  setConfirmation(body: BodyOf<'setConfirmation'>, options?: CallOptions) {
    return this.#api.call('setConfirmation', { params: this, body }, options)
  }

  /**
   * Follows the events: first the stored ones after `after`, then each one when it is stored, with `deltas` also live
   * text, with `hook_client` also the hooks that this client is asked. Each event arrives once and in order, over lost
   * connections and restarts of the server; a hook that still waits, once with each connection. Ends when the
   * conversation is deleted.
   */
  events<T extends EventType = EventType>(
    options?: EventsOptions<T> & { readonly deltas?: false | undefined; readonly hook_client?: undefined },
  ): AsyncGenerator<EventOf<T>>
  events<T extends EventType = EventType>(
    options: EventsOptions<T> & { readonly hook_client?: undefined },
  ): AsyncGenerator<EventOf<T> | TransientEvent>
  events<T extends EventType = EventType>(options: EventsOptions<T>): AsyncGenerator<StreamedEvent<T>>
  events<T extends EventType>(options: EventsOptions<T> = {}): AsyncGenerator<StreamedEvent<T>> {
    const { maxRetries } = this.#api.transport
    return eventsOf({ source: this.#source, maxRetries }, this.id, options)
  }

  listEvents<T extends EventType = EventType>(query: ListEventsQuery<T> = {}, options?: CallOptions) {
    return listOf<EventPage<T>>(async (page_id = query.page_id) => {
      const page = await this.#api.call('listEvents', { params: this, query: { ...query, page_id } }, options)
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the server returns only the requested types
      return page as EventPage<T>
    })
  }

  countEvents(query?: QueryFor<'countEvents'>, options?: CallOptions) {
    return this.#api.call('countEvents', { params: this, query }, options)
  }

  getEvent(event_id: string, options?: CallOptions) {
    return this.#api.call('getEvent', { params: { id: this.id, event_id } }, options)
  }

  /** Returns a part of an event as it is, such as one of its `cut_texts`. The response has it as `text()` and `blob()`. */
  getEventPart(event_id: string, pointer: string, options: CallOptions = {}): Promise<Response> {
    return this.#api.send(
      'getEventPart',
      { params: { id: this.id, event_id }, query: { pointer } },
      options,
      (response) => response,
    )
  }

  /** Stores an event for other clients. The agent does not see it. */
  postEvent(body: BodyOf<'postEvent'>, options?: CallOptions) {
    return this.#api.call('postEvent', { params: this, body }, options)
  }

  async #end({ after, runId, signal }: End): Promise<RunSummary> {
    const outcome = await outcomeIn(this.events({ after, signal, types: END_TYPES }), runId)
    if (outcome) return outcome
    throw new AgentServerError('conversation_deleted', 'The conversation was deleted before the run ended.')
  }
}
