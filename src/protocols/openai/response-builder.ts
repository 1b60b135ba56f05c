/** Turns the changes of a turn into the output items and the stream events of a response. Pure. */
import type {
  ResponseOutputItem,
  ResponseOutputMessage,
  ResponseReasoningItem,
} from 'openai/resources/responses/responses'
import type { EventOf } from '../../contract/events/event.ts'
import { hasForm, questionForm } from '../../contract/requests/request-forms.ts'
import { outputText } from '../../contract/values/output-text.ts'
import type { Usage } from '../../contract/values/message.ts'
import { NO_USAGE, addUsage } from '../../contract/values/message.ts'
import type { TextKind, TurnChange } from '../items/turn-changes.ts'
import { textOfQuestion } from '../shared/question-text.ts'
import type { ResponseEnd } from './response-end.ts'
import { endOf } from './response-end.ts'
import type { ResponseId } from './response-id.ts'
import { formatCallId } from './call-id.ts'
import { jsonOf } from './chat-words.ts'
import { approvalId, plainUuid } from './response-id.ts'
import { SERVER_LABEL } from './response-request.ts'

/** `sequence_number` follows from the log, too: a client continues after any of them. */
export type ResponseEvent = {
  readonly type: string
  readonly sequence_number: number
  readonly [field: string]: unknown
}

/** Events of one change: the results of all calls of a turn can wait in one request. */
const EVENTS_OF_CHANGE = 2 ** 11
/** The events before the first change: `response.created` and `response.in_progress`. */
const FIRST = EVENTS_OF_CHANGE

type Grown = Extract<TurnChange, { type: 'grown' }>
type Text = Extract<TurnChange, { messageId: string }>

type Flags = Pick<ResponseId, 'asksApproval' | 'isStructured'>

export class ResponseBuilder {
  readonly output: ResponseOutputItem[] = []
  end: ResponseEnd | undefined
  usage: Usage = NO_USAGE
  readonly #flags: Flags
  /** The number of the item in the stream; retracted ones are in the stream alone. */
  #index = -1
  #numberOfText = -1
  /** Calls that the client executes. */
  readonly #ofClient = new Set<string>()
  /** The request in which the client was asked about the call. */
  readonly #askedIds = new Map<string, string>()
  #lastText = ''
  #events: ResponseEvent[] = []
  #number = 0

  constructor(flags: Flags) {
    this.#flags = flags
  }

  /** What happened before the response: its calls may get their results in it. */
  recall(change: TurnChange): void {
    if (change.type === 'asked') this.#note(change.request)
  }

  /** Returns the events with a higher number than `after`. */
  add(change: TurnChange, after = -1): readonly ResponseEvent[] {
    this.#events = []
    this.#number = FIRST + change.position * EVENTS_OF_CHANGE
    // Clients read every message of such a response as JSON.
    if (this.#flags.isStructured && 'kind' in change && change.kind === 'text') return []
    if (change.type === 'grown') this.#grow(change, after)
    else this.#take(change)
    return this.#events.filter((event) => event.sequence_number > after)
  }

  /** The number of an event that follows all others. */
  get lastNumber(): number {
    return this.#number
  }

  count(usage: Usage): void {
    this.usage = addUsage(this.usage, usage)
  }

  #take(change: Exclude<TurnChange, Grown>): void {
    switch (change.type) {
      case 'begun':
        return this.#begin(change.kind, change.messageId)
      case 'complete':
        return this.#complete(change)
      case 'retracted':
        return this.#put('response.output_item.done', itemOf(change, 'incomplete'), this.#numberOfText)
      case 'call':
        return
      case 'result':
        return this.#result(change.call, change.result)
      case 'asked':
        this.#note(change.request)
        return this.#ask(change.request)
      case 'rests':
        this.end ??= { status: 'completed', error: null, incomplete_details: null, stopReason: undefined }
        return
      case 'ended':
        return this.#finish(change)
    }
  }

  #begin(kind: TextKind, messageId: string): void {
    this.#numberOfText = ++this.#index
    const item = itemOf({ kind, messageId, text: '' }, 'in_progress')
    this.#put('response.output_item.added', kind === 'text' ? { ...item, content: [] } : { ...item, summary: [] })
    if (kind === 'text') this.#part('response.content_part.added', item.id, outputTextPart(''))
    else this.#part('response.reasoning_summary_part.added', item.id, { type: 'summary_text', text: '' })
  }

  #grow({ kind, messageId, text, position }: Grown, after: number): void {
    // Of the number that the client has seen last, as a position.
    const seenCount = (after - FIRST) / EVENTS_OF_CHANGE
    const delta = text.slice(Math.max(0, Math.floor(seenCount) - (position - text.length)))
    if (delta !== '') this.#text('delta', kind, idOf(kind, messageId), { delta })
  }

  #complete({ kind, messageId, text }: Text & { readonly text: string }): void {
    const item = itemOf({ kind, messageId, text }, 'completed')
    this.#text('done', kind, item.id, { text })
    if (kind === 'text') this.#part('response.content_part.done', item.id, outputTextPart(text))
    else this.#part('response.reasoning_summary_part.done', item.id, { type: 'summary_text', text })
    this.#put('response.output_item.done', item, this.#numberOfText)
    this.output.push(item)
    if (kind === 'text') this.#lastText = text
  }

  /** Tools of the server are never functions: a client would try to run these. */
  #result(call: EventOf<'ToolUse'>, result: EventOf<'ToolResult'>): void {
    const { tool_use_id: id, name } = call
    if (this.#ofClient.has(id)) return
    const requestId = this.#askedIds.get(id)
    const output = outputText(result.output)
    const item: ResponseOutputItem.McpCall = {
      type: 'mcp_call',
      id: `mcp_${id}`,
      server_label: SERVER_LABEL,
      name,
      arguments: jsonOf(result.ran_input ?? call.input),
      ...(requestId !== undefined &&
        this.#flags.asksApproval && {
          approval_request_id: approvalId({ conversationId: call.conversation_id, requestId, toolUseId: id }),
        }),
      output: result.is_error ? null : output,
      ...(result.is_error && {
        error: { type: 'mcp_tool_execution_error', content: result.error_message ?? output },
      }),
      status: result.is_error ? 'failed' : 'completed',
    }
    const { arguments: input } = item
    this.#add(item, { ...item, output: null, error: null, arguments: '', status: 'in_progress' }, () => {
      const of = { item_id: item.id, output_index: this.#index }
      this.#event('response.mcp_call.in_progress', of)
      this.#event('response.mcp_call_arguments.done', { ...of, arguments: input })
      this.#event(`response.mcp_call.${result.is_error ? 'failed' : 'completed'}`, of)
    })
  }

  #note({ kind, request_id, tool_use_ids }: EventOf<'RequestOpened'>): void {
    if (kind === 'client_tool') for (const id of tool_use_ids) this.#ofClient.add(id)
    if (kind === 'permission') for (const id of tool_use_ids) this.#askedIds.set(id, request_id)
  }

  #ask(request: EventOf<'RequestOpened'>): void {
    const { request_id, tool_use_ids } = request
    if (request.kind === 'client_tool') {
      const [id = request_id] = tool_use_ids
      const { name, input } = request.payload
      const item = {
        type: 'function_call',
        id: `fc_${id}`,
        call_id: formatCallId({ conversationId: request.conversation_id, toolUseId: id }),
        name,
        arguments: jsonOf(input),
        status: 'completed',
      } as const
      return this.#add(item, { ...item, arguments: '', status: 'in_progress' }, () => {
        const of = { item_id: item.id, output_index: this.#index }
        this.#event('response.function_call_arguments.delta', { ...of, delta: item.arguments })
        this.#event('response.function_call_arguments.done', { ...of, name, arguments: item.arguments })
      })
    }
    if (request.kind === 'permission' && this.#flags.asksApproval) {
      for (const { tool_use_id, name, input } of request.payload.tool_uses) {
        const { conversation_id: conversationId } = request
        const id = approvalId({ conversationId, requestId: request_id, toolUseId: tool_use_id })
        this.#add({ type: 'mcp_approval_request', id, server_label: SERVER_LABEL, name, arguments: jsonOf(input) })
      }
      return
    }
    this.#say(request_id, wordsFor(request))
  }

  #finish({ result, error, isAtLimit }: Extract<TurnChange, { type: 'ended' }>): void {
    const { structured_output: structuredOutput, final_text } = result
    const text = structuredOutput === undefined ? final_text : jsonOf(structuredOutput)
    if (/\S/.test(text) && text.trim() !== this.#lastText.trim()) this.#say(result.id, text)
    this.end = endOf(result, error, isAtLimit)
  }

  /** A whole message of the server. */
  #say(id: string, text: string): void {
    const message = { kind: 'text', messageId: id } as const
    this.#begin('text', id)
    this.#text('delta', 'text', idOf('text', id), { delta: text })
    this.#complete({ type: 'complete', position: 0, ...message, text })
  }

  #add(item: ResponseOutputItem, firstForm: object = item, between: () => void = () => {}): void {
    this.#index++
    this.#put('response.output_item.added', firstForm)
    between()
    this.#put('response.output_item.done', item)
    this.output.push(item)
  }

  #put(type: string, item: object, output_index = this.#index): void {
    this.#event(type, { output_index, item })
  }

  #part(type: string, item_id: string | undefined, part: object): void {
    const place = type.includes('reasoning') ? { summary_index: 0 } : { content_index: 0 }
    this.#event(type, { item_id, output_index: this.#numberOfText, ...place, part })
  }

  #text(step: 'delta' | 'done', kind: TextKind, item_id: string | undefined, fields: object): void {
    const output_index = this.#numberOfText
    if (kind === 'text')
      this.#event(`response.output_text.${step}`, { item_id, output_index, content_index: 0, logprobs: [], ...fields })
    else this.#event(`response.reasoning_summary_text.${step}`, { item_id, output_index, summary_index: 0, ...fields })
  }

  #event(type: string, fields: object): void {
    this.#events.push({ type, ...fields, sequence_number: this.#number++ })
  }
}

const idOf = (kind: TextKind, messageId: string): string => `${kind === 'text' ? 'msg' : 'rs'}_${plainUuid(messageId)}`

const outputTextPart = (text: string) => ({ type: 'output_text' as const, text, annotations: [], logprobs: [] })

type WrittenText = { readonly kind: TextKind; readonly messageId: string; readonly text: string }

function itemOf(
  { kind, messageId, text }: WrittenText,
  status: 'in_progress' | 'completed' | 'incomplete',
): ResponseOutputMessage | ResponseReasoningItem {
  const id = idOf(kind, messageId)
  return kind === 'text'
    ? { type: 'message', id, role: 'assistant', status, content: [outputTextPart(text)] }
    : { type: 'reasoning', id, status, summary: [{ type: 'summary_text', text }] }
}

/** Returns text about a request, for a client that cannot answer it in this protocol, and for questions, which the next message closes. */
function wordsFor(request: EventOf<'RequestOpened'>): string {
  const { request_id, kind, payload } = request
  if (hasForm(request, 'questions'))
    return [
      ...request.payload.questions.map(textOfQuestion),
      ...(questionForm(request.kind).unanswered
        ? [`(The next message declines this form: request ${request_id}.)`]
        : []),
    ].join('\n\n')
  const calls = 'tool_uses' in payload ? payload.tool_uses.map(({ name, input }) => `${name} ${jsonOf(input)}`) : [kind]
  return `The agent waits for a decision: ${calls.join('; ')}. Decide about request ${request_id} with the API of the server.`
}
