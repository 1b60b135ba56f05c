/** Turns the steps of a turn into the chunks of its answer: live and replayed the same message. Pure. */
import type { Event, EventOf } from '../../contract/events/event.ts'
import type { StopReason } from '../../contract/events/status.ts'
import { outputText } from '../../contract/values/output-text.ts'
import type { TurnStep } from '../items/follow-turn.ts'
import type { TurnChange } from '../items/turn-changes.ts'
import type { AnswerPlace } from './answer-id.ts'
import { formatAnswerId } from './answer-id.ts'
import type { ClientToolsAt } from './client-tools-in.ts'
import { RequestChunks } from './request-chunks.ts'
import type { UiChunk, UiFinishReason } from './ui-chunk.ts'
import { inputPartsOf, userMessageId } from './user-message.ts'

type ChangeOf<T extends TurnChange['type']> = Extract<TurnChange, { type: T }>
type Steering = { readonly seq: number; readonly chunk: UiChunk }

/** The model answer that the open step belongs to. `isOfRequests`: what waits for a decision has the last step. */
type OpenStep = { readonly messageId: string; isReset?: boolean; isOfRequests?: boolean }

/** `clientToolsAt`: which tools clients execute; all others are those of the server. */
type BuilderOptions = { readonly clientToolsAt: ClientToolsAt }

/** Call `begin`, then `add` with each step, in order, and `end` when there are no more. */
export class ChunkBuilder {
  readonly #place: AnswerPlace
  readonly #clientToolsAt: ClientToolsAt
  readonly #requests = new RequestChunks()
  /** Messages that were posted while the agent works are shown before the next step. */
  #steering: Steering[] = []
  #step: OpenStep | undefined
  /** The parts since the last `start-step`. */
  #inStep: UiChunk[] = []
  /** Calls of the main agent without a result. */
  readonly #openCalls = new Set<string>()
  #end: ChangeOf<'ended'> | undefined
  #out: UiChunk[] = []

  constructor(place: AnswerPlace, { clientToolsAt }: BuilderOptions) {
    this.#place = place
    this.#clientToolsAt = clientToolsAt
  }

  begin(): readonly UiChunk[] {
    const { conversationId } = this.#place
    return [
      { type: 'start', messageId: formatAnswerId(this.#place), messageMetadata: { conversation_id: conversationId } },
    ]
  }

  add({ seq, change, event, isOfBefore }: TurnStep): readonly UiChunk[] {
    this.#out = []
    if (isOfBefore || seq === this.#place.start) return []
    if (change) this.#take(change)
    else if (event && 'seq' in event) this.#read(event)
    return this.#out
  }

  /** The chunks that follow the last step. */
  end(): readonly UiChunk[] {
    this.#out = []
    this.#flush(Infinity)
    if (this.#step) this.#put({ type: 'finish-step' })
    if (this.#end) this.#finish(this.#end)
    else this.#put({ type: 'finish', finishReason: 'tool-calls' })
    return this.#out
  }

  #read(event: Event): void {
    if (event.type === 'AssistantMessage' && event.parent_tool_use_id === undefined)
      this.#open(event.message_id, event.read_through)
    if (event.type === 'RequestAnswered' || event.type === 'RequestClosed')
      for (const chunk of this.#requests.end(event)) this.#put(chunk)
    if (event.type === 'UserMessage') {
      const chunk = { type: 'steering-message', id: userMessageId(event), parts: inputPartsOf(event.content) } as const
      this.#steering.push({ seq: event.seq, chunk })
    }
  }

  #take(change: TurnChange): void {
    switch (change.type) {
      case 'begun':
        this.#open(change.messageId)
        return this.#put({ type: `${change.kind}-start`, id: textId(change) })
      case 'grown':
        return this.#put({ type: `${change.kind}-delta`, id: textId(change), delta: change.text })
      case 'complete':
        return this.#put({ type: `${change.kind}-end`, id: textId(change) })
      case 'retracted':
        return this.#reset()
      case 'call':
        return this.#call(change.call)
      case 'result':
        return this.#result(change)
      case 'asked':
        return this.#ask(change.request)
      case 'rests':
        return
      case 'ended':
        this.#end = change
        return
      default:
        change satisfies never
    }
  }

  /** The step of an attempt that failed is that of the next one. */
  #open(messageId: string, readThrough = Infinity): void {
    if (this.#step?.messageId === messageId) return
    if (this.#step?.isReset) {
      this.#step = { messageId }
      return
    }
    if (this.#step) this.#put({ type: 'finish-step' })
    this.#flush(readThrough)
    this.#put({ type: 'start-step' })
    this.#step = { messageId }
  }

  #flush(throughSeq: number): void {
    for (const { seq, chunk } of this.#steering) if (seq <= throughSeq) this.#put(chunk)
    this.#steering = this.#steering.filter(({ seq }) => seq > throughSeq)
  }

  #reset(): void {
    if (this.#step && !this.#step.isReset) this.#put({ type: 'reset-step' })
    if (this.#step) this.#step.isReset = true
  }

  /** Clients send decisions when nothing else of the last step is open: what waits for them gets a step. */
  #ask(request: EventOf<'RequestOpened'>): void {
    if (request.kind === 'permission' && this.#step && !this.#step.isOfRequests) {
      const calls = new Set(request.tool_use_ids)
      if (request.parent_tool_use_id !== undefined) this.#splitStep(new Set())
      else if (this.#openCalls.difference(calls).size > 0) this.#splitStep(calls)
    }
    for (const chunk of this.#requests.open(request)) this.#put(chunk)
  }

  /** Moves these calls to a step after the open one. */
  #splitStep(calls: ReadonlySet<string>): void {
    const chunks = this.#inStep
    const isMoved = (chunk: UiChunk) => 'toolCallId' in chunk && calls.has(chunk.toolCallId)
    if (calls.size > 0) {
      this.#put({ type: 'reset-step' })
      for (const chunk of chunks) if (!isMoved(chunk)) this.#put(chunk)
    }
    this.#put({ type: 'start-step' })
    for (const chunk of chunks) if (isMoved(chunk)) this.#put(chunk)
    if (this.#step) this.#step.isOfRequests = true
  }

  #isOfClient({ seq, name }: EventOf<'ToolUse'>): boolean {
    return this.#clientToolsAt(seq).has(name)
  }

  #call(call: EventOf<'ToolUse'>): void {
    const { tool_use_id: toolCallId, name: toolName, input } = call
    this.#openCalls.add(toolCallId)
    const own = this.#isOfClient(call) ? {} : ({ providerExecuted: true, dynamic: true } as const)
    this.#put({ type: 'tool-input-available', toolCallId, toolName, input, ...own })
  }

  #result({ call, result }: ChangeOf<'result'>): void {
    const { tool_use_id: toolCallId } = call
    const { output, error_message: message, error_type, is_error: isError, changes } = result
    const own = this.#isOfClient(call) ? {} : ({ providerExecuted: true } as const)
    this.#openCalls.delete(toolCallId)
    if (changes && changes.length > 0) this.#put({ type: 'data-diff', id: toolCallId, data: changes })
    const isRefused = error_type === 'denied' || error_type === 'rejected'
    if (isRefused && this.#requests.wasDenied(toolCallId)) this.#put({ type: 'tool-output-denied', toolCallId })
    else if (isError)
      this.#put({ type: 'tool-output-error', toolCallId, errorText: message ?? outputText(output), ...own })
    else this.#put({ type: 'tool-output-available', toolCallId, output, ...own })
  }

  #finish({ result, error }: ChangeOf<'ended'>): void {
    const { usage, cost_usd, stop_reason, structured_output } = result
    const messageMetadata = {
      stop_reason,
      usage,
      ...(cost_usd !== undefined && { cost_usd }),
      ...(structured_output !== undefined && { structured_output }),
    }
    if (stop_reason === 'error') {
      this.#put({ type: 'message-metadata', messageMetadata })
      return this.#put({ type: 'error', errorText: error?.message ?? 'The run failed.' })
    }
    const finishReason = FINISH_REASONS[stop_reason] ?? 'length'
    if (finishReason === 'interrupted') this.#put({ type: 'abort', reason: stop_reason })
    this.#put({ type: 'finish', finishReason, messageMetadata })
  }

  #put(chunk: UiChunk): void {
    if (chunk.type === 'start-step' || chunk.type === 'reset-step') this.#inStep = []
    else this.#inStep.push(chunk)
    this.#out.push(chunk)
  }
}

/** All others are limits. */
const FINISH_REASONS: Partial<Record<StopReason, UiFinishReason>> = {
  completed: 'stop',
  finished: 'stop',
  paused: 'interrupted',
  cancelled: 'interrupted',
  rejected: 'interrupted',
  superseded: 'interrupted',
  content_filter: 'content-filter',
  stuck: 'other',
  hook: 'other',
  server_restart: 'other',
  owner_lost: 'other',
}

/** A model answer has one reasoning and one text. */
const textId = ({ messageId, kind }: { readonly messageId: string; readonly kind: string }) => `${messageId}:${kind}`
