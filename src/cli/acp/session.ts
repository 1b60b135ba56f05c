/** One session of an editor: shows what happens in its conversation, also by other clients, and takes its prompts. */
import type {
  AgentContext,
  ClientCapabilities,
  ContentBlock,
  PromptResponse,
  SessionUpdate,
} from '@agentclientprotocol/sdk'
import { RequestError } from '@agentclientprotocol/sdk'
import type { ConversationHandle } from '../../client/conversation/conversation-handle.ts'
import type { ConversationView } from '../../contract/conversation.ts'
import type { Event, EventOf } from '../../contract/events/event.ts'
import type { RewoundSpan } from '../../contract/events/rewound.ts'
import { holds, withRewind } from '../../contract/events/rewound.ts'
import type { TransientEvent } from '../../contract/events/transient-event.ts'
import { EditorRequests } from './editor-requests.ts'
import type { ProtocolHost } from '../protocol/protocol-host.ts'
import { chunk, Projection } from './projection.ts'
import { partsOfPrompt } from './prompt-content.ts'
import { changeOf, optionsOf } from './session-options.ts'
import { PromptTurn } from './turn.ts'

export type EditorPlace = {
  readonly client: AgentContext
  readonly capabilities: ClientCapabilities
  readonly host: ProtocolHost
}

const PAGE = 500

export class EditorSession {
  readonly #place: EditorPlace
  readonly #conversation: ConversationHandle
  readonly #projection: Projection
  readonly #editorRequests: EditorRequests
  readonly #abort = new AbortController()
  /** Idempotency keys of the messages that this session has sent. */
  readonly #own = new Set<string>()
  #view: ConversationView
  #costUsd: number | undefined
  #turn: PromptTurn | undefined
  /** Resolves when the prompt of the turn has its answer. */
  #answered: Promise<void> = Promise.resolve()
  /** Why nothing more arrives. */
  #end: Error | undefined

  constructor(place: EditorPlace, view: ConversationView) {
    this.#place = place
    this.#view = view
    this.#costUsd = view.cost_usd
    const { client, capabilities, host } = place
    this.#conversation = host.client.conversation(view.id)
    this.#projection = new Projection({
      workdir: view.workdir,
      isOwn: ({ idempotency_key: key }) => key !== undefined && this.#own.has(key),
      showsNotices: (capabilities.session?.notices ?? undefined) !== undefined,
    })
    this.#editorRequests = new EditorRequests({
      client,
      conversation: this.#conversation,
      workdir: view.workdir,
      showsForms: this.#showsForms,
      tell: async (text) => this.#send(chunk('agent_message_chunk', crypto.randomUUID(), text)),
    })
  }

  get view(): ConversationView {
    return this.#view
  }

  /** Shows the whole conversation so far. Returns the last event of it. */
  async replay(): Promise<void> {
    const spans = await this.#rewound()
    for await (const event of this.#conversation.listEvents({ limit: PAGE }))
      if (event.seq <= this.#view.last_seq && holds(spans, event)) await this.#send(this.#projection.take(event))
    await this.#showUsage(this.#view.context.used)
  }

  /** Follows the conversation from what is known of it until `close`, and asks what it waits for. */
  async follow(): Promise<void> {
    void this.#follow(this.#view.last_seq)
    const { items } = await this.#conversation.requests.list()
    for (const request of items) await this.#editorRequests.ask(request)
  }

  /** Sends what the editor completes after a slash. Best effort. */
  async showCommands(): Promise<void> {
    const { project_settings: project } = await this.#conversation.agentInfo()
    const entries = [...(project?.commands ?? []), ...(project?.skills ?? [])]
    const availableCommands = entries.map(({ name, description, argument_hint: hint }) => ({
      name,
      description,
      ...(hint !== undefined && { input: { hint } }),
    }))
    await this.#send([{ sessionUpdate: 'available_commands_update', availableCommands }])
  }

  /** Throws a `RequestError` while another prompt is answered. After `cancel` the next one waits for its end. */
  async prompt(blocks: readonly ContentBlock[]): Promise<PromptResponse> {
    const content = partsOfPrompt(blocks)
    while (this.#turn) {
      if (!this.#turn.isCancelled)
        throw RequestError.invalidRequest(undefined, 'this session answers a prompt; wait for its end, or cancel it')
      await this.#answered
    }
    if (this.#end) throw this.#end
    const turn = new PromptTurn({ canAnswer: this.#showsForms, onCutOff: (after) => this.#continue(after) })
    this.#turn = turn
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#answered = promise
    try {
      const idempotencyKey = crypto.randomUUID()
      this.#own.add(idempotencyKey)
      const { seq, run_id } = await this.#conversation.send(content, { idempotencyKey })
      turn.begin(seq, run_id)
      // The pause may have come before the message.
      if (turn.isCancelled) await this.#pause()
      return await turn.ended
    } finally {
      this.#turn = undefined
      resolve()
    }
  }

  /** Stops what runs, also if another client has started it. Nothing is approved by it. */
  async cancel(): Promise<void> {
    const turn = this.#turn
    if (turn) turn.isCancelled = true
    this.#editorRequests.withdrawAll()
    await this.#pause().catch((error: unknown) => {
      if (!turn) throw error
      turn.fail(error)
    })
  }

  /** Throws a `RequestError` for an option that does not exist. Returns the options after the change. */
  async setOption(id: string, value: unknown) {
    this.#view = await this.#conversation.updateConfig(changeOf(id, value))
    return optionsOf(this.#view, this.#place.host.models)
  }

  /** Does not stop the agent. */
  close(): void {
    this.#abort.abort()
    this.#editorRequests.withdrawAll()
    this.#turn?.fail(RequestError.invalidRequest(undefined, 'the session was closed'))
  }

  get #showsForms(): boolean {
    return (this.#place.capabilities.elicitation?.form ?? undefined) !== undefined
  }

  async #pause(): Promise<void> {
    await this.#conversation.pause({ interrupt: true })
  }

  #continue(after: number): Promise<string | undefined> | undefined {
    return this.#place.host.continueRun?.(this.#conversation, after)
  }

  async #follow(after: number): Promise<void> {
    try {
      const { signal } = this.#abort
      for await (const event of this.#conversation.events({ after, deltas: true, signal })) await this.#take(event)
      this.#fail(new Error('The conversation was deleted.'))
    } catch (error) {
      if (!this.#abort.signal.aborted) this.#fail(error instanceof Error ? error : new Error(String(error)))
    }
  }

  #fail(error: Error): void {
    this.#end = error
    this.#editorRequests.withdrawAll()
    this.#turn?.fail(error)
  }

  async #take(event: Event | TransientEvent): Promise<void> {
    await this.#send(this.#projection.take(event))
    if (!('seq' in event)) return
    if (event.type === 'AssistantMessage') await this.#count(event)
    if (event.type === 'ConfigUpdate') await this.#showOptions(event)
    await this.#editorRequests.take(event)
    this.#turn?.take(event)
  }

  async #count({ usage, cost_usd, parent_tool_use_id }: EventOf<'AssistantMessage'>): Promise<void> {
    if (cost_usd !== undefined) this.#costUsd = (this.#costUsd ?? 0) + cost_usd
    if (parent_tool_use_id === undefined) await this.#showUsage(usage.input_tokens + usage.output_tokens)
  }

  /** The size of the context window is unknown for some models. */
  async #showUsage(usedTokens: number): Promise<void> {
    const { size } = this.#view.context
    if (size === undefined) return
    const cost = this.#costUsd === undefined ? undefined : { amount: this.#costUsd, currency: 'USD' }
    await this.#send([{ sessionUpdate: 'usage_update', used: usedTokens, size, ...(cost && { cost }) }])
  }

  async #showOptions({ changes }: EventOf<'ConfigUpdate'>): Promise<void> {
    if (!('permission_mode' in changes) && !('llm_config' in changes)) return
    this.#view = await this.#conversation.get()
    const configOptions = optionsOf(this.#view, this.#place.host.models)
    await this.#send([{ sessionUpdate: 'config_option_update', configOptions }])
  }

  async #rewound(): Promise<readonly RewoundSpan[]> {
    let spans: readonly RewoundSpan[] = []
    for await (const event of this.#conversation.listEvents({ types: ['Rewound'], limit: PAGE }))
      spans = withRewind(spans, event)
    return spans
  }

  async #send(updates: readonly SessionUpdate[]): Promise<void> {
    const sessionId = this.#conversation.id
    for (const update of updates) await this.#place.client.notify('session/update', { sessionId, update })
  }
}
