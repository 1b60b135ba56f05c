/**
 * Folds events into the messages that the model reads. It only ever appends, so that each request extends the previous
 * one byte for byte; only a `Condensation` replaces messages.
 */
import type { Event, EventOf } from '../../contract/events/event.ts'
import type { ModelMessage } from '../../llm/llm.ts'
import {
  outputInstruction,
  contextOf,
  continueAfter,
  isContinue,
  isDue,
  repeatImages,
  tellChange,
  tellEnd,
  tellEndOfProcesses,
  partsOfUser,
  wordsOf,
} from './event-words.ts'
import { imagesOf, type RenderOutput, type ResultDraft, toModelCall, toToolMessage } from './tool-messages.ts'
import { isSent } from './history-types.ts'
import type { ForgottenRange } from '../../state/state-shape.ts'
import { ContextSize, tokensOfText } from './context-size.ts'
import { type ListedMessage, MessageList } from './message-list.ts'
import type { ResultPlace } from './shorten.ts'
import { type OpenTurn, openTurn, waitsOnlyFor } from './open-turn.ts'

type HistoryOptions = { readonly agentId?: string | undefined; readonly forgotten?: ForgottenRange | undefined }

export class History {
  readonly size = new ContextSize()
  readonly #callIds = new Set<string>()
  readonly #list = new MessageList()
  readonly #render: RenderOutput
  readonly #agentId: string | undefined
  /** The list is incomplete up to this event, and what the model reported does not fit it. */
  readonly #incompleteThrough: number
  /** The calls that the subagent has worked for. */
  readonly #tasks = new Set<string>()
  #system = ''
  /** The seq of the event that is being added. */
  #seq = 0
  /** Whether a request asked to continue, and its answer is not stored. */
  #hasContinue = false
  // The calls of an answer and their results are adjacent: messages of the open turn wait until each call has a result.
  #turn: OpenTurn | undefined
  readonly #held: ListedMessage[] = []
  /** The place of a result in the log, which is known when its event is stored. */
  #expected: { readonly toolUseId: string; readonly origin: { eventId: string; path: string | undefined } } | undefined

  /** `agentId`: absent for the main agent. `forgotten`: set it if forgotten answers and results are not added. */
  constructor(render: RenderOutput, { agentId, forgotten }: HistoryOptions = {}) {
    this.#render = render
    this.#agentId = agentId
    this.#incompleteThrough = forgotten?.seq ?? 0
  }

  get system(): string {
    return this.#system
  }

  /** Grows only, and existing messages never change. After a `Condensation` it is another list. */
  get messages(): readonly ModelMessage[] {
    return this.#list.messages
  }

  /** The same messages with their places in the log. */
  get entries(): readonly ListedMessage[] {
    return this.#list.entries
  }

  /** The ids of all calls so far, also of those that are forgotten, and those of other agents. */
  get callIds(): ReadonlySet<string> {
    return this.#callIds
  }

  /** Returns what compactions have forgotten, by seq. */
  get forgottenThrough(): number {
    return this.#list.forgottenThrough
  }

  /** True while the event of an expected result is not stored. */
  get isExpecting(): boolean {
    return this.#expected !== undefined
  }

  /** Returns what `messagesToSend` would return, and keeps nothing: something may still be stored before the request. */
  upcoming(): readonly ModelMessage[] {
    const { messages } = this.#list
    return isDue(messages.at(-1)) ? [...messages, continueAfter(this.#list.entries.at(-1))] : messages
  }

  /** Returns the messages for a request now: the last one is from the user or a tool result, as endpoints require. */
  messagesToSend(): readonly ModelMessage[] {
    if (!isContinue(this.#list.messages.at(-1))) this.#takeBack()
    this.#hasContinue = this.#takeTurns() || this.#hasContinue
    return this.#list.messages
  }

  /** Knows that the id of a call is in use, whose answer was rewound. */
  addCallId(id: string): void {
    this.#callIds.add(id)
  }

  /** Adds an event that holds. Call it with each event once, in the order of the log. */
  add(event: Event): void {
    if (!isSent(event)) return
    if (event.type === 'SubagentStart' && event.agent_id === this.#agentId) this.#tasks.add(event.parent_tool_use_id)
    if (event.type === 'Result') return this.#endOfSubagent(event)
    if (event.type === 'ToolUse') this.#callIds.add(event.tool_use_id)
    if (event.type === 'Rewound') this.#leaveTurn() // a subagent may have been in the middle of it
    if (!this.#isOwn(event)) return
    if (event.type === 'Condensation') return this.#condense(event)
    this.#seq = event.seq
    switch (event.type) {
      case 'SystemInit':
        this.#system = event.system_prompt
        return
      case 'SubagentStart':
        this.#system ||= event.system_prompt
        return this.#push({ role: 'user', content: [{ type: 'text', text: event.prompt }] }, 'user')
      case 'ForkedFrom':
      case 'ConfigUpdate':
      case 'Rewound':
      case 'FilesRestored':
        return this.#tell(tellChange(event))
      case 'ProcessesEnded':
        return this.#push({ role: 'user', content: [{ type: 'text', text: tellEndOfProcesses(event) }] })
      case 'UserMessage':
        return this.#push({ role: 'user', content: partsOfUser(event) }, 'user')
      case 'MessageWithdrawn':
        return this.#withdraw(event)
      case 'HookEvent':
        // What hooks say about a call is part of its result.
        if (event.tool_use_id === undefined && event.context) this.#push({ role: 'user', content: contextOf(event) })
        return
      case 'OutputRequest':
        return this.#requestOutput(event)
      case 'AssistantMessage':
        return this.#answered(event)
      case 'ToolUse':
        this.#turn?.calls.push(toModelCall(event))
        this.#turn?.names.set(event.tool_use_id, event.name)
        return
      case 'ToolResult':
        if (event.tool_use_id !== this.#expected?.toolUseId)
          return this.#resulted(event, { eventId: event.id, path: event.full_output_path })
        this.#expected.origin.eventId = event.id
        this.#expected = undefined
        return
      default:
        event satisfies never
    }
  }

  /**
   * Adds a result whose event is being stored, if it is the last that the open turn waits for; otherwise returns false.
   * The list is then as it will be with the event. If that cannot be stored, the history must not be used any more.
   */
  expect(result: ResultDraft): boolean {
    if (!this.#turn || !waitsOnlyFor(this.#turn, result.tool_use_id)) return false
    this.#expected = { toolUseId: result.tool_use_id, origin: { eventId: '', path: result.full_output_path } }
    this.#resulted(result, this.#expected.origin)
    return true
  }

  #tell(text: string | undefined): void {
    if (text !== undefined) this.#push({ role: 'user', content: [{ type: 'text', text }] }, 'move')
  }

  /** The end of shells is also that of a subagent that had begun by then. */
  #isOwn(event: Event): boolean {
    if (event.type === 'ProcessesEnded' && this.#tasks.size > 0) return true
    const task = 'parent_tool_use_id' in event ? event.parent_tool_use_id : undefined
    return task === undefined ? this.#agentId === undefined : this.#tasks.has(task)
  }

  /** The main agent reads the results of subagents that worked in the background. */
  #endOfSubagent(event: EventOf<'Result'>): void {
    if (event.background_agent_id === undefined || this.#agentId !== undefined) return
    this.#seq = event.seq
    this.#push({ role: 'user', content: [{ type: 'text', text: tellEnd(event) }] })
  }

  /** No answer has read it. */
  #withdraw({ message_seq: seq }: EventOf<'MessageWithdrawn'>): void {
    const isIt = (entry: ListedMessage) => entry.seq === seq && entry.kind === 'user'
    const heldIndex = this.#held.findIndex(isIt)
    if (heldIndex >= 0) return void this.#held.splice(heldIndex, 1)
    const entry = this.#list.entries.findLast(isIt)
    if (entry) this.size.removed(entry.message, this.#list.removeLast(entry.message))
  }

  #requestOutput(event: EventOf<'OutputRequest'>): void {
    const kind = event.output_schema ? 'schema' : 'other'
    this.#push({ role: 'user', content: [{ type: 'text', text: outputInstruction(event) }] }, kind, event.run_id)
  }

  #push(message: ModelMessage, kind: ListedMessage['kind'] = 'other', runId?: string): void {
    this.#put({ seq: this.#seq, message, kind, ...(runId !== undefined && { runId }) })
  }

  #put(entry: ListedMessage): void {
    if (this.#turn) this.#held.push(entry)
    else this.#list.push(entry)
  }

  /** Returns true if messages came while the model wrote the answer: they are before it, and it does not know them. */
  #leavesUnread({ read_through: readThrough }: EventOf<'AssistantMessage'>): boolean {
    const last = this.#list.entries.at(-1)
    return readThrough !== undefined && last?.message.role === 'user' && last.seq > readThrough
  }

  /** Starting a run without a message asks the agent to continue; the answers then have no request in between. */
  #takeTurns(): boolean {
    const last = this.#list.entries.at(-1)
    if (!isDue(last?.message)) return false
    // It has the place of the message before it: a compaction keeps both or neither.
    this.#list.push({ seq: last?.seq ?? 0, message: continueAfter(last), kind: 'other' })
    return true
  }

  /** Removes a request to continue without an answer, which a reader of the log does not know of. */
  #takeBack(): void {
    const last = this.#hasContinue ? this.#list.messages.findLast(isContinue) : undefined
    if (last) this.size.removed(last, this.#list.removeLast(last))
    this.#hasContinue = false
  }

  /** The answer's request asked to continue, if all messages since the answer before it were stored later. */
  #takeTurnsBefore({ read_through: readThrough }: EventOf<'AssistantMessage'>): void {
    if (readThrough === undefined || this.#turn) return
    const { entries } = this.#list
    const at = entries.findLastIndex(({ seq }) => seq <= readThrough) + 1
    const before = entries[at - 1]
    if (at < entries.length && isDue(before?.message))
      this.#list.insert(at, { seq: before?.seq ?? 0, message: continueAfter(before), kind: 'other' })
  }

  #answered(event: EventOf<'AssistantMessage'>): void {
    this.#hasContinue = false
    this.#takeTurnsBefore(event)
    if (!this.#turn) this.#takeTurns()
    if (event.tool_use_ids.length) return void (this.#turn = openTurn(event))
    // A message without text or calls contains nothing, and providers refuse it.
    if (event.text.trim() === '') return
    const message: ModelMessage = { role: 'assistant', ...wordsOf(event), toolCalls: [] }
    this.#put({ seq: event.seq, kind: 'other', message, leftUnread: this.#leavesUnread(event) })
    if (!this.#turn) this.#measure(event)
  }

  #resulted(result: ResultDraft, origin: ResultPlace): void {
    const turn = this.#turn
    const id = result.tool_use_id
    if (!turn?.callIds.includes(id)) return
    turn.results.set(id, { message: toToolMessage(result, turn.names.get(id) ?? '', this.#render), origin })
    turn.images.set(id, imagesOf(result))
    if (turn.results.size === turn.callIds.length) this.#settle(turn)
  }

  #leaveTurn(): void {
    this.#turn = undefined
    for (const entry of this.#held.splice(0)) this.#list.push(entry)
  }

  /** Moves the turn to the list: each of its calls has a result. */
  #settle(turn: OpenTurn): void {
    const place = { seq: turn.answer.seq, kind: 'other' } as const
    this.#list.push({ ...place, message: { role: 'assistant', ...wordsOf(turn.answer), toolCalls: turn.calls } })
    this.#measure(turn.answer)
    for (const id of turn.callIds) {
      const result = turn.results.get(id)
      if (result) this.#list.push({ ...place, ...result })
    }
    const images = turn.callIds.flatMap((id) => turn.images.get(id) ?? [])
    // In some APIs a tool's message accepts text only, and nothing may be between the results of a turn.
    if (images.length) this.#list.push({ ...place, message: repeatImages(images) })
    this.#leaveTurn()
  }

  /** The answer is the last message. */
  #measure({ usage, read_through, seq }: EventOf<'AssistantMessage'>): void {
    if (seq < this.#incompleteThrough) return
    const { entries, messages } = this.#list
    const unreadMessages: ModelMessage[] = []
    for (let at = entries.length - 2; at >= 0; at--) {
      const entry = entries[at]
      if (!entry || entry.seq <= (read_through ?? seq)) break
      unreadMessages.push(entry.message)
    }
    this.size.measured(usage, messages, unreadMessages)
  }

  #condense(event: EventOf<'Condensation'>): void {
    this.#takeBack()
    this.size.forget(this.#list.messages, () => tokensOfText(this.#system))
    this.#list.condense(event)
  }
}
