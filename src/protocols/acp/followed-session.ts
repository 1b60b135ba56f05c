/** What the sessions of both versions have in common: shows what happens in a conversation, also by other clients, and asks. */
import type { ConversationHandle } from '../../client/conversation/conversation-handle.ts'
import type { ConversationView } from '../../contract/conversation.ts'
import type { Event, EventOf } from '../../contract/events/event.ts'
import type { RewoundSpan } from '../../contract/events/rewound.ts'
import { holds, withRewind } from '../../contract/events/rewound.ts'
import type { TransientEvent } from '../../contract/events/transient-event.ts'
import { shareNext } from '../../lib/lazily.ts'
import type { EditorEdge } from './editor-edge.ts'
import type { ProgramHost } from '../shared/program-host.ts'
import { EditorRequests } from './editor-requests.ts'
import { changeOf, optionsOf } from './session-options.ts'

export type FollowedPlace = {
  readonly host: ProgramHost
  /** Reports what nobody waits for. */
  readonly warn: (text: string) => void
}

/** Called with what arrives, after it was shown. */
export type SessionObserver = {
  readonly take: (event: Event) => Promise<void> | void
  /** Nothing more arrives. */
  readonly fail: (error: Error) => void
}

const PAGE = 500

export class FollowedSession {
  readonly conversation: ConversationHandle
  readonly #place: FollowedPlace
  readonly #edge: EditorEdge
  readonly #observer: SessionObserver
  readonly #requests: EditorRequests
  readonly #abort = new AbortController()
  #view: ConversationView
  #costUsd: number | undefined

  constructor(place: FollowedPlace, view: ConversationView, edge: EditorEdge, observer: SessionObserver) {
    this.#place = place
    this.#view = view
    this.#edge = edge
    this.#observer = observer
    this.#costUsd = view.cost_usd
    this.conversation = place.host.client.conversation(view.id)
    const { conversation } = this
    this.#requests = new EditorRequests({ edge, conversation, workdir: view.workdir, warn: place.warn })
  }

  readonly #pauseNext = shareNext(async () => {
    this.#requests.withdrawAll()
    await this.conversation.pause({ interrupt: true })
  })
  #pausing: Promise<unknown> = Promise.resolve()

  get view(): ConversationView {
    return this.#view
  }

  /** Shows the whole conversation so far, or what follows an event. Returns the last event of it. */
  async replay(after = 0): Promise<void> {
    for await (const event of this.history({ after_seq: after })) await this.#edge.show(event)
    await this.#showUsage(this.#view.context.used)
  }

  /** The stored events up to what is known of the conversation, without those that were rewound. */
  async *history(query: Parameters<ConversationHandle['listEvents']>[0]): AsyncGenerator<Event> {
    const spans = await this.#rewound()
    for await (const event of this.conversation.listEvents({ ...query, limit: PAGE }))
      if (event.seq <= this.#view.last_seq && holds(spans, event)) yield event
  }

  /** Follows the conversation from what is known of it until `close`, and asks what it waits for. */
  async follow(): Promise<void> {
    void this.#follow(this.#view.last_seq)
    const { items } = await this.conversation.requests.list()
    for (const request of items) await this.#requests.ask(request)
  }

  /** Sends what the editor completes after a slash. Best effort. */
  async showCommands(): Promise<void> {
    const { project_settings: project } = await this.conversation.agentInfo()
    const entries = [...(project?.commands ?? []), ...(project?.skills ?? [])]
    const availableCommands = entries.map(({ name, description, argument_hint: hint }) => ({
      name,
      description,
      ...(hint !== undefined && { input: { hint } }),
    }))
    await this.#edge.send([{ sessionUpdate: 'available_commands_update', availableCommands }])
  }

  /** Interrupts what runs, also if another client has started it. Nothing is approved by it. Calls while one works share the next. */
  pause(): Promise<void> {
    const pausing = this.#pauseNext()
    this.#pausing = pausing.catch(() => {})
    return pausing
  }

  /** Sends a message behind the pauses that came before it: none of them interrupts its run. */
  async send(...message: Parameters<ConversationHandle['send']>): ReturnType<ConversationHandle['send']> {
    await this.#pausing
    return await this.conversation.send(...message)
  }

  /** Throws a `RequestError` for what is not offered. Returns the options after the change. */
  async setOption(id: string, value: unknown) {
    const { models } = this.#place.host
    this.#view = await this.conversation.updateConfig(changeOf(optionsOf(this.#view, models), id, value))
    return optionsOf(this.#view, models)
  }

  /** Does not stop the agent. */
  close(): void {
    this.#abort.abort()
    this.#requests.withdrawAll()
  }

  async #follow(after: number): Promise<void> {
    try {
      const { signal } = this.#abort
      for await (const event of this.conversation.events({ after, deltas: true, signal })) await this.#take(event)
      this.#fail(new Error('The conversation was deleted.'))
    } catch (error) {
      if (!this.#abort.signal.aborted) this.#fail(error instanceof Error ? error : new Error(String(error)))
    }
  }

  #fail(error: Error): void {
    this.#requests.withdrawAll()
    this.#observer.fail(error)
  }

  async #take(event: Event | TransientEvent): Promise<void> {
    await this.#edge.show(event)
    if (!('seq' in event)) return
    if (event.type === 'AssistantMessage') await this.#count(event)
    if (event.type === 'ConfigUpdate') await this.#showOptions(event)
    await this.#requests.take(event)
    await this.#observer.take(event)
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
    await this.#edge.send([{ sessionUpdate: 'usage_update', used: usedTokens, size, ...(cost && { cost }) }])
  }

  async #showOptions({ changes }: EventOf<'ConfigUpdate'>): Promise<void> {
    if (!('permission_mode' in changes) && !('llm_config' in changes)) return
    this.#view = await this.conversation.get()
    const configOptions = optionsOf(this.#view, this.#place.host.models)
    await this.#edge.send([{ sessionUpdate: 'config_option_update', configOptions }])
  }

  async #rewound(): Promise<readonly RewoundSpan[]> {
    let spans: readonly RewoundSpan[] = []
    for await (const event of this.conversation.listEvents({ types: ['Rewound'], limit: PAGE }))
      spans = withRewind(spans, event)
    return spans
  }
}
