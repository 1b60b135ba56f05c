/** The events of one run, in order: first its start and what the client does not have, then the turn, until it ends or rests. */
import { Problem } from '../../contract/problem.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import { followTurn, readTurn } from '../items/follow-turn.ts'
import type { TurnStep } from '../items/follow-turn.ts'
import type { AgUiEvent, AgUiMessage, ToolMessageIds } from './ag-ui-event.ts'
import { AG_UI_VERSION } from './ag-ui-event.ts'
import type { BegunRun } from './begin-run.ts'
import type { InputMessage, RunInput } from './run-input.ts'
import { threadMessages } from './thread-messages.ts'
import { TurnEvents } from './turn-events.ts'

const AT_REST: TurnStep = {
  seq: undefined,
  change: { type: 'rests', position: 0 },
  event: undefined,
  isOfBefore: false,
}

export class RunStream {
  readonly #conversation: Conversation
  readonly #input: RunInput
  readonly #run: BegunRun
  readonly #toolMessageIds: ToolMessageIds
  /** Seq of the last event that was shown. */
  #seen: number

  constructor(conversation: Conversation, input: RunInput, run: BegunRun) {
    this.#conversation = conversation
    this.#input = input
    this.#run = run
    this.#seen = run.isReplay ? run.start : run.start - 1
    this.#toolMessageIds = new Map(
      input.messages.flatMap(({ id, role, toolCallId }) => (role === 'tool' && toolCallId ? [[toolCallId, id]] : [])),
    )
  }

  /** An empty list: nothing has happened for a while. The signal ends it without an error. */
  async *events(signal: AbortSignal): AsyncGenerator<readonly AgUiEvent[], void, void> {
    const { threadId, runId } = this.#input
    const { start, answeredCalls } = this.#run
    yield [{ type: 'RUN_STARTED', threadId, runId, protocolVersion: AG_UI_VERSION }]
    const snapshots = await this.#firstSnapshots()
    if (snapshots.length > 0) yield snapshots
    const turn = new TurnEvents({ threadId, runId, toolMessageIds: this.#toolMessageIds, answeredCalls })
    // Nothing happens until somebody sends something: more of the answers that it waits for, or what runs its last message.
    const rests = this.#run.isReplay && this.#conversation.state.status !== 'running'
    const { log } = this.#conversation
    for await (const step of rests ? readTurn(log, start) : followTurn(log, start, signal)) {
      yield* this.#eventsOf(turn, step)
      if (turn.isOver) return
    }
    if (rests) return yield* this.#eventsOf(turn, AT_REST)
    if (!signal.aborted) throw new Problem('unavailable', 'The events of the run ended. Send the request again.')
  }

  async *#eventsOf(turn: TurnEvents, step: TurnStep): AsyncGenerator<readonly AgUiEvent[], void, void> {
    if (!step.change && !step.event) return yield []
    const { events, retracted } = turn.add(step)
    this.#seen = Math.max(this.#seen, step.seq ?? 0)
    if (events.length > 0) yield events
    if (retracted.length > 0) yield [await this.#snapshot(retracted)]
  }

  /** None if the client has all messages of the thread. A client that has seen a part of the turn forgets it. */
  async #firstSnapshots(): Promise<AgUiEvent[]> {
    const history = await this.#history()
    const own = new Map(this.#input.messages.map((message) => [message.id, message]))
    const gap = history.findIndex((message) => message.role !== 'reasoning' && !isSame(message, own.get(message.id)))
    if (!this.#run.isReplay && gap < 0 && !this.#hasTornAnswer(history)) return []
    const before = this.#unknownBefore(history)
    const staleIds = this.#input.messages.flatMap(({ id, role }) => (role === 'reasoning' ? [id] : []))
    const whole = snapshotOf([...before, ...history, ...this.#ownNow(history)], staleIds)
    // Clients put what is new to them at the end: they must forget what comes after it first.
    return gap < 0 ? [whole] : [snapshotOf([...before, ...history.slice(0, gap)], []), whole]
  }

  /** The beginning of an answer that was taken back while nobody looked. */
  #hasTornAnswer(history: readonly AgUiMessage[]): boolean {
    const knownIds = new Set(history.map(({ id }) => id))
    const { messages } = this.#input
    const firstKnown = messages.findIndex(({ id }) => knownIds.has(id))
    return (
      firstKnown >= 0 && messages.slice(firstKnown).some(({ id, role }) => role === 'assistant' && !knownIds.has(id))
    )
  }

  async #snapshot(retractedIds: readonly string[]): Promise<AgUiEvent> {
    this.#seen = Math.max(this.#seen, this.#run.through)
    const history = await this.#history()
    return snapshotOf([...this.#unknownBefore(history), ...history], retractedIds)
  }

  #history(): Promise<readonly AgUiMessage[]> {
    return threadMessages(this.#conversation, this.#seen, this.#toolMessageIds)
  }

  /** What the thread has begun with elsewhere: clients forget what is not in a snapshot. */
  #unknownBefore(history: readonly AgUiMessage[]): InputMessage[] {
    const knownIds = new Set(history.map(({ id }) => id))
    const firstKnown = this.#input.messages.findIndex(({ id }) => knownIds.has(id))
    const end = firstKnown < 0 ? this.#input.messages.findLastIndex(({ role }) => role === 'assistant') + 1 : firstKnown
    return this.#input.messages.slice(0, end).filter(({ role }) => role !== 'reasoning' && role !== 'activity')
  }

  /** What the client says with this request. */
  #ownNow(history: readonly AgUiMessage[]): InputMessage[] {
    if (this.#run.isReplay) return []
    const knownIds = new Set(history.map(({ id }) => id))
    const last = this.#input.messages.findLastIndex(({ role }) => role === 'assistant')
    return this.#input.messages
      .slice(last + 1)
      .filter(({ id, role }) => !knownIds.has(id) && (role === 'user' || role === 'tool'))
  }
}

/** A client that has lost its connection can have the beginning of an answer. */
function isSame(message: AgUiMessage, own: InputMessage | undefined): boolean {
  if (!own || message.role !== 'assistant') return own !== undefined
  const calls = message['toolCalls']
  const count = Array.isArray(calls) ? calls.length : 0
  return (own.content ?? '') === (message['content'] ?? '') && (own.toolCalls?.length ?? 0) === count
}

/**
 * Clients keep reasoning that is not in a snapshot, unless another one is in it: without any, the messages `forgottenIds` are
 * emptied.
 */
function snapshotOf(messages: readonly AgUiMessage[], forgottenIds: readonly string[]): AgUiEvent {
  const knownIds = new Set(messages.map(({ id }) => id))
  const hasReasoning = messages.some(({ role }) => role === 'reasoning')
  const emptiedMessages = forgottenIds
    .filter((id) => !hasReasoning && !knownIds.has(id) && id.endsWith(':reasoning'))
    .map((id) => ({ id, role: 'reasoning', content: '' }))
  return { type: 'MESSAGES_SNAPSHOT', messages: [...messages, ...emptiedMessages] }
}
