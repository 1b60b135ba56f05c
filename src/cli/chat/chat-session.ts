/** One conversation in the chat: reads its events, keeps what is shown of it, and sends what the user does. */
import { AgentServerError } from '../../client/agent-server-error.ts'
import type { AgentServerClient } from '../../client/client.ts'
import type { ConversationHandle } from '../../client/conversation/conversation-handle.ts'
import type { ConversationView } from '../../contract/conversation.ts'
import type { UserInput } from '../../contract/message.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ChatState } from './state/chat-state.ts'
import { EMPTY_STATE, isBusy } from './state/chat-state.ts'
import type { ChatEvent } from './state/reduce.ts'
import { reduce } from './state/reduce.ts'

type SessionOptions = {
  readonly client: AgentServerClient
  readonly view: ConversationView
  readonly maxSteps: number | undefined
  readonly onChange: (session: ChatSession) => void
}

/** Events of a resumed conversation that are shown. */
const SHOWN_EVENTS = 300
const PROBE_MS = 500

export class ChatSession {
  readonly conversation: ConversationHandle
  readonly view: ConversationView
  #state: ChatState
  readonly #options: SessionOptions
  readonly #abort = new AbortController()
  /** The last event that was read. */
  #seq = 0
  #probing: Promise<void> | undefined

  constructor(options: SessionOptions) {
    const { client, view } = options
    this.#options = options
    this.view = view
    this.conversation = client.conversation(view.id)
    this.#state = { ...EMPTY_STATE, ...viewed(view) }
  }

  get state(): ChatState {
    return this.#state
  }

  /** Shows the end of the conversation so far, and then follows it until `close`. Never throws. */
  async open(): Promise<void> {
    const { signal } = this.#abort
    while (!signal.aborted) {
      try {
        await this.#catchUp()
        await this.#follow()
        return this.fail(new Error('This conversation was deleted; /new starts another one.'))
      } catch (error) {
        if (!isLost(error)) return this.fail(error)
        this.#onDisconnect(error.message)
        await this.#probing
      }
    }
  }

  close(): void {
    this.#abort.abort()
  }

  dispatch(event: ChatEvent): void {
    if (this.#abort.signal.aborted) return
    this.#state = reduce(this.#state, event, Date.now())
    this.#options.onChange(this)
  }

  say(text: string): void {
    this.dispatch({ type: 'Notice', tone: 'info', text })
  }

  fail(error: unknown): void {
    this.dispatch({ type: 'Notice', tone: 'error', text: error instanceof Error ? error.message : String(error) })
  }

  /** Starts a run, or steers the active one. */
  async send(content: UserInput['content']): Promise<void> {
    const max_steps = this.#options.maxSteps
    if (max_steps === undefined || isBusy(this.#state)) return void (await this.conversation.send(content))
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- it is not a window
    await this.conversation.postMessage({ message: { role: 'user', content }, run: false })
    await this.conversation.run({ max_steps })
  }

  async interrupt(): Promise<void> {
    await this.conversation.pause({ interrupt: true })
  }

  async #catchUp(): Promise<void> {
    if (this.#seq === 0 && this.view.last_seq > 1) await this.#readEarlier()
    this.dispatch({ type: 'Pending', pending: await this.#readPending() })
  }

  async #readEarlier(): Promise<void> {
    const query = { before_seq: this.view.last_seq + 1, order: 'desc', limit: SHOWN_EVENTS } as const
    const { items, next_page_id } = await this.conversation.listEvents(query)
    if (next_page_id !== null) this.say('Earlier parts of this conversation are not shown.')
    this.#seq = this.view.last_seq
    for (const event of items.toReversed()) this.#state = reduce(this.#state, event, Date.now())
    this.dispatch({ type: 'Viewed', view: viewed(this.view) })
  }

  /** What waits may have been asked long ago. */
  async #readPending() {
    const { permissions, questions, networkRequests } = this.conversation
    const [asked, asking, network] = await Promise.all([permissions.list(), questions.list(), networkRequests.list()])
    const approvals = asked.items.flatMap(({ request_id: requestId, tool_uses }) =>
      tool_uses.filter(({ decision }) => decision === undefined).map((call) => ({ requestId, call })),
    )
    return { approvals, questions: asking.items, networkApprovals: network.items }
  }

  async #follow(): Promise<void> {
    const events = this.conversation.events({
      after: this.#seq,
      deltas: true,
      signal: this.#abort.signal,
      giveUpAfterMs: Number.POSITIVE_INFINITY,
      onDisconnect: (reason) => this.#onDisconnect(reason.message),
    })
    for await (const event of events) {
      if (!this.#state.isConnected) this.dispatch({ type: 'Connection', isConnected: true })
      if ('seq' in event) this.#seq = event.seq
      this.dispatch(event)
    }
  }

  #onDisconnect(reason: string): void {
    this.dispatch({ type: 'Connection', isConnected: false, reason })
    this.#probing ??= this.#probe().finally(() => (this.#probing = undefined))
  }

  /** A stream without new events does not say that it is connected again. */
  async #probe(): Promise<void> {
    while (!this.#state.isConnected && !this.#abort.signal.aborted) {
      await sleep(PROBE_MS)
      const isAlive = await this.#options.client.alive({ signal: this.#abort.signal }).then(
        () => true,
        () => false,
      )
      if (isAlive) this.dispatch({ type: 'Connection', isConnected: true })
    }
  }
}

/** There was no response: the server is stopping, or the network is down. */
const isLost = (error: unknown): error is AgentServerError =>
  error instanceof AgentServerError && (error.code === 'connection_failed' || error.code === 'unavailable')

function viewed({ llm_config, state, status, usage, cost_usd }: ConversationView) {
  return { status, model: llm_config.model ?? '', mode: state.permission_mode, usage, costUsd: cost_usd }
}
