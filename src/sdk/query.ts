/**
 * `query()`: asks an agent, and yields the events of its session. It speaks the REST API with the typed client, to a
 * server in this process, in another one on this machine, or elsewhere: there is one path for all of them.
 */
import type { AgentServerClient } from '../client/client.ts'
import type { BodyOf } from '../client/operations/operations.ts'
import type { ConversationHandle } from '../client/conversation/conversation-handle.ts'
import type { Event } from '../contract/events/event.ts'
import type { ModelInfo } from '../contract/models.ts'
import type { TransientEvent } from '../contract/events/transient-event.ts'
import { invalid } from './errors/invalid.ts'
import { openLink } from './local/server-link.ts'
import { checkChange, checkRequest } from './options/check-options.ts'
import { splitHooks } from './options/hooks-option.ts'
import type { OwnOptions } from './options/other-names.ts'
import { ownMode, withOwnNames } from './options/other-names.ts'
import type { ApprovalOptions, ContinuedSession, Prompt, QueryOptions } from './options/query-options.ts'
import { repeatLost } from './errors/repeat-lost.ts'
import { isServerLost, serverLost } from './errors/server-lost.ts'
import { followSession } from './session/follow-session.ts'
import type { CommandInfo, ContextUsage, McpServersChange } from './session/session-info.ts'
import { commandsIn, contextUsageOf, replaceMcpServers } from './session/session-info.ts'
import { openSession } from './session/open-session.ts'
import type { RewindFilesOptions } from './session/rewind-files.ts'
import { rewindFiles } from './session/rewind-files.ts'
import type { ServerLink } from './local/server-link.ts'
import type { FunctionHook } from './options/hooks-option.ts'
import type { FunctionHooksOptions } from './hooks/function-hooks.ts'
import type { AttachedHooks } from './hooks/attached-hooks.ts'
import { FunctionHooks } from './hooks/function-hooks.ts'
import { AgentServerError } from '../client/request/agent-server-error.ts'

export type QueryEvent = Event | TransientEvent

/**
 * A request without a prompt continues a session where it stopped: what waits is asked again, and a run that was cut
 * off continues.
 */
export type QueryRequest =
  | { readonly prompt: Prompt; readonly options?: QueryOptions | undefined }
  | { readonly prompt?: undefined; readonly options: QueryOptions & ContinuedSession }

/** Starts with the first `next()`. Does nothing before that. */
export const query = (request: QueryRequest): Query => new Query(request)

/** `left`: by the reader, before the end. */
type Outcome = { readonly kind: 'over' | 'left' } | { readonly kind: 'failed'; readonly error: unknown }

/**
 * Ends when the agent has answered, or waits for a decision that nothing here makes. `return()` stops the run. Everything
 * that it started ends with it: nothing keeps the process alive afterwards.
 */
export class Query implements AsyncIterableIterator<QueryEvent, void, undefined>, AsyncDisposable {
  readonly #request: QueryRequest
  #options: OwnOptions = {}
  readonly #events: AsyncGenerator<QueryEvent, void, undefined>
  readonly #ending = new AbortController()
  /** Aborted when the query is left or fails: then nothing is waited for. */
  readonly #leaving = new AbortController()
  /** Active requests, which end before the connection to the server does. */
  readonly #controls = new Set<Promise<unknown>>()
  #outcome: Outcome | undefined
  #conversation: ConversationHandle | undefined
  #client: AgentServerClient | undefined

  constructor(request: QueryRequest) {
    this.#request = request
    this.#events = this.#run()
  }

  /** The id of the session; undefined before the first event. */
  get sessionId(): string | undefined {
    return this.#conversation?.id
  }

  /** Ends the active run with its running tool. The session can be continued, also with the next message of the prompt. */
  interrupt(): Promise<void> {
    return this.#control(async (conversation) => {
      await repeatLost(() => conversation.pause({ interrupt: true }))
    })
  }

  /** Holds from the next tool call on. */
  setPermissionMode(mode: NonNullable<ApprovalOptions['permissionMode']>): Promise<void> {
    return this.#configure('permissionMode', mode, () => ({ permission_mode: ownMode(mode) }))
  }

  /** Holds from the next request to the model on. */
  setModel(model: string): Promise<void> {
    return this.#configure('model', model, () => ({ llm_config: { model } }))
  }

  /** Gives the agent the tools of these servers, and of no others, from the next turn on. */
  setMcpServers(servers: NonNullable<QueryOptions['mcpServers']>): Promise<McpServersChange> {
    return this.#control(async (conversation) => {
      checkChange('mcpServers', servers)
      return await replaceMcpServers(conversation, servers)
    })
  }

  /** The MCP servers with their status and their tools. */
  mcpServerStatus() {
    return this.#control(async (conversation) => await conversation.mcp.list().all())
  }

  /** Returns how full the context window of the model is. */
  getContextUsage(): Promise<ContextUsage> {
    return this.#control(async (conversation) => contextUsageOf(await conversation.get()))
  }

  /** The models that the server knows, with their limits and prices. */
  supportedModels(): Promise<readonly ModelInfo[]> {
    return this.#control((_, client) => client.models({ limit: 1000 }).all())
  }

  /** The slash commands and skills that `settingSources` have brought. */
  supportedCommands(): Promise<readonly CommandInfo[]> {
    return this.#control(async (conversation) => commandsIn(await conversation.agentInfo()))
  }

  /** The agents that the tool `Task` has. */
  supportedAgents() {
    return this.#control(async (conversation) => (await conversation.agentInfo()).agents)
  }

  /** Cancels a task that was posted to the session, or stops a subagent in the background by its `agent_id`. Returns what it is after its end. */
  stopTask(id: string) {
    return this.#control((conversation) => stopTask(conversation, id))
  }

  /** Takes a message back that the agent has not read, and returns it. `messageId` is the id of its `UserMessage` event. */
  withdrawMessage(messageId: string) {
    return this.#control(async (conversation) => await conversation.withdrawMessage(messageId))
  }

  /**
   * Restores the files as they were when a message was sent, with `enableFileCheckpointing`. `messageId` is the id of its
   * `UserMessage` event. The conversation stays as it is; an active run is paused.
   */
  rewindFiles(messageId: string, options: RewindFilesOptions = {}) {
    return this.#control((conversation) => rewindFiles(conversation, messageId, options))
  }

  next(): Promise<IteratorResult<QueryEvent, void>> {
    return this.#events.next()
  }

  /** Stops the run, also while another call of `next()` waits, which then returns that the query is done. */
  return(): Promise<IteratorResult<QueryEvent, void>> {
    this.#end({ kind: 'left' })
    return this.#events.return()
  }

  throw(error: unknown): Promise<IteratorResult<QueryEvent, void>> {
    this.#end({ kind: 'failed', error })
    return this.#events.throw(error)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return()
  }

  #configure(
    name: Parameters<typeof checkChange>[0],
    value: unknown,
    changes: () => BodyOf<'updateConfig'>,
  ): Promise<void> {
    return this.#control(async (conversation) => {
      checkChange(name, value)
      await conversation.updateConfig(changes())
    })
  }

  async #control<T>(work: (conversation: ConversationHandle, client: AgentServerClient) => Promise<T>): Promise<T> {
    if (!this.#conversation || !this.#client || this.#outcome)
      throw invalid('The query is not active. Read its first event before you control it, and do so while it lasts.')
    const working = work(this.#conversation, this.#client)
    this.#controls.add(working)
    return await working
      .catch((error: unknown) => Promise.reject(this.#withSession(error)))
      .finally(() => this.#controls.delete(working))
  }

  async *#run(): AsyncGenerator<QueryEvent, void, undefined> {
    // Programs without types can pass anything.
    checkRequest(this.#request)
    this.#options = withOwnNames(this.#request.options ?? {})
    const { abortController } = this.#options
    const onAbort = () => this.#end({ kind: 'failed', error: abortController?.signal.reason })
    abortController?.signal.throwIfAborted()
    abortController?.signal.addEventListener('abort', onAbort, { once: true })
    try {
      yield* this.#inSession()
    } catch (error) {
      if (this.#outcome?.kind === 'failed') throw this.#withSession(this.#outcome.error)
      if (!this.#outcome) throw this.#withSession(error)
    } finally {
      abortController?.signal.removeEventListener('abort', onAbort)
      this.#end({ kind: 'over' })
    }
  }

  async *#inSession(): AsyncGenerator<QueryEvent, void, undefined> {
    const { callbacks } = splitHooks(this.#options.hooks)
    const link = await openLink(this.#options, this.#ending.signal)
    try {
      const { signal } = this.#ending
      const { prompt } = this.#request
      const session = await openSession(link.client, { prompt, options: this.#options, signal })
      this.#client = link.client
      this.#conversation = session.conversation
      const fail = (error: unknown) => this.#end({ kind: 'failed', error })
      const hooks = await attachHooks(link, callbacks, { ...session, fail, signal: this.#leaving.signal })
      try {
        yield* followSession(session, {
          prompt,
          options: this.#options,
          executing: link.executing,
          failsWithServer: link.isInOther,
          signal,
          onOver: () => this.#end({ kind: 'over' }),
          fail,
        })
        this.#end({ kind: 'over' })
      } finally {
        await this.#settle(hooks)
        await hooks[Symbol.asyncDispose]()
        await Promise.allSettled(this.#controls)
      }
    } finally {
      await link[Symbol.asyncDispose]()
    }
  }

  /** The functions may still be called for what the agent has done. */
  async #settle(hooks: AttachedHooks): Promise<void> {
    if (this.#outcome?.kind !== 'over') return
    // The agent has answered: what is left of its server changes nothing.
    await hooks.settle(this.#leaving.signal).catch(() => {})
  }

  /** The error for the end of the server says how to continue this session. */
  #withSession(error: unknown): unknown {
    return isServerLost(error) ? serverLost(this.sessionId) : error
  }

  /** The first outcome counts. */
  #end(outcome: Outcome): void {
    this.#outcome ??= outcome
    this.#ending.abort(this.#outcome)
    if (outcome.kind !== 'over') this.#leaving.abort(outcome)
  }
}

/** The server calls the hooks that are functions itself, or asks this process. Removes them when it is disposed. */
async function attachHooks(
  link: ServerLink,
  hooks: readonly FunctionHook[],
  options: FunctionHooksOptions,
): Promise<AttachedHooks> {
  if (hooks.length === 0) return { async settle() {}, async [Symbol.asyncDispose]() {} }
  const here = link.callbackHooks
  if (!here) return await FunctionHooks.register(hooks, options)
  return here.add(options.conversation.id, hooks)
}

/** Returns the task, or the end of the subagent. */
async function stopTask(conversation: ConversationHandle, id: string) {
  try {
    return await conversation.tasks.cancel(id)
  } catch (error) {
    if (!(error instanceof AgentServerError) || error.code !== 'task_not_found') throw error
    return await conversation.stopSubagent(id)
  }
}
