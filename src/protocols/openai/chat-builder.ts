/** Turns the changes of a turn into an answer of the Chat Completions API, and into the pieces of its stream. Pure. */
import type { EventOf } from '../../contract/events/event.ts'
import type { Usage } from '../../contract/values/message.ts'
import { NO_USAGE, addUsage } from '../../contract/values/message.ts'
import { isUnknownModel } from '../../llm/error-rules.ts'
import type { TurnStep } from '../items/follow-turn.ts'
import type { TurnChange } from '../items/turn-changes.ts'
import { formatCallId } from './call-id.ts'
import { TAKEN_BACK, STOPPED, jsonOf, lineOf, waitingWords } from './chat-words.ts'
import { OpenAiError, unknownModel } from './openai-error.ts'

type ToolCall = {
  readonly id: string
  readonly type: 'function'
  readonly function: { readonly name: string; readonly arguments: string }
}

export type ChatDelta = {
  readonly content?: string
  readonly reasoning_content?: string
  readonly tool_calls?: readonly (ToolCall & { readonly index: number })[]
}

export type FinishReason = 'stop' | 'length' | 'content_filter' | 'tool_calls'

type Flags = {
  readonly conversationId: string
  /** The conversation ends with the answer. */
  readonly isTemporary: boolean
  /** The only text is JSON that fits the schema of the request. */
  readonly isStructured: boolean
  /** Names of the functions of the client. */
  readonly functions: ReadonlySet<string>
}

type Kind = 'content' | 'reasoning_content'

/** `id`: of the answer of the model, or of what else the text belongs to. */
type Block = { readonly id: string; text: string }

const BETWEEN: Readonly<Record<Kind, string>> = { content: '\n\n', reasoning_content: '\n' }

export class ChatBuilder {
  readonly calls: ToolCall[] = []
  /** Undefined until the turn has ended or rests. */
  finish: FinishReason | undefined
  /** Why the run failed. */
  failure: OpenAiError | undefined
  usage: Usage = NO_USAGE
  readonly #flags: Flags
  readonly #blocks: Record<Kind, Block[]> = { content: [], reasoning_content: [] }
  /** Whether a stream has text of this kind. */
  readonly #isShown: Record<Kind, boolean> = { content: false, reasoning_content: false }
  #isRetracted = false
  /** Asked before this turn, and not answered. */
  readonly #waits = new Map<string, EventOf<'RequestOpened'>>()
  #deltas: ChatDelta[] = []

  constructor(flags: Flags) {
    this.#flags = flags
  }

  get content(): string {
    return this.#textOf('content')
  }

  get reasoning(): string {
    return this.#textOf('reasoning_content')
  }

  /** Returns what a stream gets more. */
  addStep({ change, event, isOfBefore }: TurnStep): readonly ChatDelta[] {
    if (event?.type === 'AssistantMessage' && !isOfBefore) this.usage = addUsage(this.usage, event.usage)
    if (!change) return []
    if (!isOfBefore) return this.#add(change)
    this.#recall(change)
    return []
  }

  /** What happened before this turn. */
  #recall(change: TurnChange): void {
    if (change.type === 'asked') this.#waits.set(change.request.request_id, change.request)
    if (change.type === 'result') this.#answered(change.call.tool_use_id)
  }

  #add(change: TurnChange): readonly ChatDelta[] {
    this.#deltas = []
    this.#take(change)
    return this.#deltas
  }

  #take(change: TurnChange): void {
    switch (change.type) {
      case 'begun':
      case 'complete':
        return
      case 'grown':
        if (change.kind === 'reasoning') this.#write('reasoning_content', change.messageId, change.text)
        else if (!this.#flags.isStructured) this.#write('content', change.messageId, change.text)
        return
      case 'retracted':
        return this.#retract(change.kind === 'text' ? 'content' : 'reasoning_content', change.messageId)
      case 'call':
        if (this.#flags.functions.has(change.call.name)) return
        return this.#write('reasoning_content', change.call.tool_use_id, lineOf(change.call))
      case 'result':
        return this.#answered(change.call.tool_use_id)
      case 'asked':
        return this.#ask(change.request)
      case 'rests':
        return this.#rest()
      case 'ended':
        return this.#end(change)
    }
  }

  #ask(request: EventOf<'RequestOpened'>): void {
    const { conversationId, isTemporary } = this.#flags
    if (request.kind !== 'client_tool')
      return this.#write('content', request.request_id, waitingWords(request, isTemporary ? undefined : conversationId))
    const { tool_use_ids, payload } = request
    const [toolUseId = request.request_id] = tool_use_ids
    const call: ToolCall = {
      id: formatCallId({ conversationId, toolUseId }),
      type: 'function',
      function: { name: payload.name, arguments: jsonOf(payload.input) },
    }
    this.#deltas.push({ tool_calls: [{ index: this.calls.length, ...call }] })
    this.calls.push(call)
  }

  #rest(): void {
    if (this.content === '' && this.calls.length === 0) for (const request of this.#waits.values()) this.#ask(request)
    this.finish = this.calls.length > 0 ? 'tool_calls' : 'stop'
  }

  #answered(toolUseId: string): void {
    for (const [id, { tool_use_ids }] of this.#waits) if (tool_use_ids.includes(toolUseId)) this.#waits.delete(id)
  }

  #end({ result, error, isAtLimit }: Extract<TurnChange, { type: 'ended' }>): void {
    const { structured_output: structuredOutput, final_text, stop_reason: reason, interrupted } = result
    const text = structuredOutput === undefined ? final_text : jsonOf(structuredOutput)
    const last = this.#blocks.content.at(-1)?.text ?? ''
    if (/\S/.test(text) && text.trim() !== last.trim()) this.#write('content', result.id, text)
    if (interrupted || STOPS.has(reason)) this.#write('content', `${result.id} stopped`, STOPPED)
    if (FAILURES.has(reason) && !isAtLimit) this.failure = failureOf(reason, error)
    this.finish = isAtLimit ? 'length' : (FINISHES[reason] ?? 'stop')
  }

  #retract(kind: Kind, id: string): void {
    this.#blocks[kind] = this.#blocks[kind].filter((block) => block.id !== id)
    if (kind === 'content') this.#isRetracted = this.#isShown.content
  }

  /** A stream cannot take back what it has shown, but it says so. */
  #write(kind: Kind, id: string, text: string): void {
    const blocks = this.#blocks[kind]
    const last = blocks.at(-1)
    const isNext = last?.id !== id
    if (last && !isNext) last.text += text
    else blocks.push({ id, text })
    const notice = kind === 'content' && this.#isRetracted ? [TAKEN_BACK] : []
    const pieces = isNext && this.#isShown[kind] ? ['', ...notice, text] : [text]
    if (kind === 'content') this.#isRetracted = false
    this.#isShown[kind] = true
    this.#deltas.push({ [kind]: pieces.join(BETWEEN[kind]) })
  }

  #textOf(kind: Kind): string {
    return this.#blocks[kind].map(({ text }) => text).join(BETWEEN[kind])
  }
}

const STOPS: ReadonlySet<string> = new Set(['paused', 'cancelled', 'superseded', 'rejected'])
const FAILURES: ReadonlySet<string> = new Set(['error', 'server_restart', 'owner_lost', 'stuck', 'hook'])
const FINISHES: Readonly<Record<string, FinishReason>> = {
  max_steps: 'length',
  iteration_limit: 'length',
  time_limit: 'length',
  budget_limit: 'length',
  token_limit: 'length',
  content_filter: 'content_filter',
}

/** Status and code of the errors that clients of OpenAI know. */
const KNOWN_FAILURES: Readonly<Record<string, readonly [number, string]>> = {
  rate_limit: [429, 'rate_limit_exceeded'],
  quota: [429, 'insufficient_quota'],
  context_window: [400, 'context_length_exceeded'],
  content_filter: [400, 'content_filter'],
}

function failureOf(reason: string, error: EventOf<'ErrorEvent'> | undefined): OpenAiError {
  if (isUnknownModel(error?.message)) return unknownModel(error?.message)
  const [status, code] = KNOWN_FAILURES[error?.error_type ?? ''] ?? [500, 'server_error']
  return new OpenAiError(status, error?.message ?? `The run ended: ${reason}.`, { code })
}
