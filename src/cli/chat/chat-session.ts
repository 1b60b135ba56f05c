/** One conversation in the chat: reads its events, keeps what is shown of it, and sends what the user does. */
import { AgentServerError, isGatewayStatus } from '../../client/request/agent-server-error.ts'
import type { AgentServerClient } from '../../client/client.ts'
import type { ConversationHandle } from '../../client/conversation/conversation-handle.ts'
import type { ConversationView } from '../../contract/conversation.ts'
import type { UserInput } from '../../contract/values/message.ts'
import { partsOf } from '../../contract/values/message.ts'
import { textOfParts } from '../../contract/values/output-text.ts'
import { basename } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { GivenNames } from '../settings/setting-names.ts'
import { SettingNames } from '../settings/setting-names.ts'
import { startRun } from '../conversation/start-run.ts'
import type { ChatState } from './state/chat-state.ts'
import { EMPTY_STATE, isBusy } from './state/chat-state.ts'
import { nameOfMessage } from './state/conversation-name.ts'
import type { ShownRequest } from './state/chat-state.ts'
import { isForPeople, KINDS_FOR_PEOPLE } from '../../contract/requests/request-forms.ts'
import type { UnreadMessage } from './state/unread.ts'
import type { ChatEvent } from './state/reduce.ts'
import { reduce } from './state/reduce.ts'
import { findEdits } from './input/edit-finder.ts'
import { settlesWithin, timerMs } from '../../lib/bounded-wait.ts'

type SessionOptions = {
  readonly client: AgentServerClient
  readonly view: ConversationView
  readonly names: GivenNames
  readonly maxSteps: number | undefined
  /** Whether the first answer must call a tool. */
  readonly forcesTool: boolean
  readonly onChange: (session: ChatSession, event: ChatEvent) => void
  /** A message that this client has sent, by its idempotency key, is among the events. */
  readonly onStored: (key: string) => void
}

/** Events of a resumed conversation that are shown. */
const SHOWN_EVENTS = 300
const PROBE_MS = 300
/** How long one attempt may take. It grows with each attempt, for a slow network. */
const FIRST_PATIENCE_MS = 1000
const MAX_PATIENCE_MS = 30_000
/** How often this conversation is announced as open here, in milliseconds. It holds three times as long. */
const ANNOUNCE_MS = 10_000
/** How long a message may take to be stored. A network that drops packets reports nothing. */
const SEND_TIMEOUT_MS = 60_000
/** How long the end of the chat waits for a server that does not answer. */
const LEAVE_TIMEOUT_MS = 2000

export class ChatSession {
  readonly conversation: ConversationHandle
  readonly view: ConversationView
  readonly names: SettingNames
  #state: ChatState
  readonly #options: SessionOptions
  readonly #abort = new AbortController()
  /** The last event that was read. */
  #seq = 0
  #forcesTool: boolean
  #leaving = Promise.resolve()

  constructor(options: SessionOptions) {
    const { client, view } = options
    this.#options = options
    this.view = view
    this.names = new SettingNames({ 'llm_config.model': '/model', permission_mode: '/permissions', ...options.names })
    this.#forcesTool = options.forcesTool
    this.conversation = client.conversation(view.id)
    this.#state = { ...EMPTY_STATE, ...viewOf(view) }
  }

  get state(): ChatState {
    return this.#state
  }

  /** Shows the end of the conversation so far, and then follows it until `close`. Never throws. */
  async open(): Promise<void> {
    const { signal } = this.#abort
    using _announcing = this.#announce()
    while (!signal.aborted) {
      try {
        await this.#catchUp()
        const loss = await this.#follow()
        if (!loss) return this.#end(new Error('This conversation was deleted; /new starts another one.'))
        await this.#reconnect(loss)
      } catch (error) {
        if (signal.aborted) return
        if (!isLost(error)) return this.#end(error)
        await this.#reconnect(error)
      }
    }
  }

  /** Resolves when the server knows that this chat has left the conversation, or after a while. */
  async close(): Promise<void> {
    this.#abort.abort()
    await settlesWithin(LEAVE_TIMEOUT_MS, this.#leaving)
  }

  /** Best effort: a key may not write, and the connection may be lost. */
  #announce(): Disposable {
    const client = crypto.randomUUID()
    let announcement = Promise.resolve()
    const announce = () => {
      announcement = this.conversation.attend(client).catch(() => {})
    }
    announce()
    const timer = setInterval(announce, ANNOUNCE_MS).unref()
    const leave = () => {
      clearInterval(timer)
      // An announcement that arrives later would hold for a while.
      this.#leaving = announcement.then(() => this.conversation.leave(client)).catch(() => {})
    }
    this.#abort.signal.addEventListener('abort', leave, { once: true })
    return { [Symbol.dispose]: () => clearInterval(timer) }
  }

  dispatch(event: ChatEvent): void {
    if (this.#abort.signal.aborted) return
    this.#state = reduce(this.#state, this.names.inEvent(event), Date.now())
    this.#options.onChange(this, event)
    void findEdits(this, event)
  }

  say(text: string): void {
    this.dispatch({ type: 'Notice', tone: 'info', text })
  }

  fail(error: unknown): void {
    this.dispatch({
      type: 'Notice',
      tone: 'error',
      text: this.names.in(error instanceof Error ? error.message : String(error)),
    })
  }

  /** Starts a run, or steers the active one. The message is stored once for each key. */
  async send(content: UserInput['content'], idempotencyKey: string): Promise<void> {
    const signal = AbortSignal.timeout(SEND_TIMEOUT_MS)
    try {
      await this.#send(content, { idempotencyKey, signal })
    } catch (error) {
      if (error !== signal.reason) throw error
      throw new Error(`The server has not answered within ${SEND_TIMEOUT_MS / 1000} s.`, { cause: error })
    }
  }

  async #send(content: UserInput['content'], options: { idempotencyKey: string; signal: AbortSignal }): Promise<void> {
    if (isBusy(this.#state)) return void (await this.conversation.send(content, options))
    const { maxSteps } = this.#options
    await startRun(this.conversation, { content, maxSteps, forcesTool: this.#forcesTool, options })
    this.#forcesTool = false
  }

  /** Takes back the last message that the agent has not read. Returns its text; undefined if the agent has read it after all. */
  async takeBack({ event: { id, seq } }: UnreadMessage): Promise<string | undefined> {
    try {
      const { message } = await this.conversation.withdrawMessage(id)
      return message && textOfParts(partsOf(message.content))
    } catch (error) {
      if (!(error instanceof AgentServerError) || error.code !== 'already_read') throw error
      this.dispatch({ type: 'Read', seq })
      return undefined
    }
  }

  async interrupt(): Promise<void> {
    await this.conversation.pause({ interrupt: true })
  }

  async #catchUp(): Promise<void> {
    if (this.#seq === 0 && this.view.last_seq > 1) await this.#readEarlier()
    this.dispatch({ type: 'Pending', requests: await this.#readRequests() })
    this.dispatch({ type: 'Connection', isConnected: true })
  }

  async #readEarlier(): Promise<void> {
    const query = { before_seq: this.view.last_seq + 1, order: 'desc', limit: SHOWN_EVENTS } as const
    const { items, next_page_id } = await this.conversation.listEvents(query)
    if (next_page_id !== null) this.say('Earlier parts of this conversation are not shown.')
    this.#seq = this.view.last_seq
    for (const event of items.toReversed()) this.#state = reduce(this.#state, this.names.inEvent(event), Date.now())
    this.dispatch({ type: 'Viewed', view: viewOf(this.view) })
  }

  /** What waits may have been asked long ago. */
  async #readRequests(): Promise<ShownRequest[]> {
    const { items } = await this.conversation.requests.list({ kinds: KINDS_FOR_PEOPLE })
    return items.filter(isForPeople)
  }

  /** Returns why the connection was lost; undefined if the conversation was deleted. */
  async #follow(): Promise<AgentServerError | undefined> {
    const connection = new AbortController()
    const events = this.conversation.events({
      after: this.#seq,
      deltas: true,
      signal: AbortSignal.any([this.#abort.signal, connection.signal]),
      onDisconnect: (reason) => connection.abort(reason),
    })
    try {
      for await (const event of events) {
        if ('seq' in event) this.#seq = event.seq
        this.dispatch(event)
        if (event.type === 'UserMessage' && event.idempotency_key !== undefined)
          this.#options.onStored(event.idempotency_key)
      }
      return undefined
    } catch (error) {
      if (error === connection.signal.reason && error instanceof AgentServerError) return error
      throw error
    }
  }

  /** Nothing more will arrive. */
  #end(error: unknown): void {
    this.fail(error)
    this.dispatch({ type: 'Ended' })
  }

  /** Returns when the server answers. A person waits, so it is asked more often than by a program. */
  async #reconnect(reason: AgentServerError): Promise<void> {
    this.dispatch({ type: 'Connection', isConnected: false, reason: reason.message })
    for (let attempt = 1; !this.#abort.signal.aborted; attempt++) {
      await sleep(PROBE_MS, undefined, { signal: this.#abort.signal }).catch(() => {})
      const patience = AbortSignal.timeout(timerMs(Math.min(attempt * FIRST_PATIENCE_MS, MAX_PATIENCE_MS)))
      const signal = AbortSignal.any([this.#abort.signal, patience])
      const isAlive = await this.#options.client.alive({ signal }).then(
        () => true,
        () => false,
      )
      if (isAlive) return
    }
  }
}

/** There was no response, or only that of a proxy: the server is stopping, or the network is down. */
function isLost(error: unknown): error is AgentServerError {
  if (!(error instanceof AgentServerError)) return false
  const { code, status = 0 } = error
  if (code === 'connection_failed' || code === 'unavailable' || status === 429) return true
  return code === 'unexpected_response' && isGatewayStatus(status)
}

function viewOf({ title, preview = '', workdir, llm_config, state, status, usage, cost_usd }: ConversationView) {
  const name = title ?? nameOfMessage(preview)
  return {
    title: name === '' ? basename(workdir) : name,
    isNamed: name !== '',
    status,
    model: llm_config.model ?? '',
    mode: state.permission_mode,
    usage,
    costUsd: cost_usd,
  }
}
