/** Turns the steps of a turn into the events of a run. Pure. */
import { isForPeople } from '../../contract/requests/request-forms.ts'
import type { Event, EventOf } from '../../contract/events/event.ts'
import type { TransientEvent } from '../../contract/events/transient-event.ts'
import { outputText } from '../../contract/values/output-text.ts'
import type { TurnStep } from '../items/follow-turn.ts'
import { TurnRequests } from '../items/turn-requests.ts'
import type { TextKind, TurnChange } from '../items/turn-changes.ts'
import { reasoningOfAnswer, textOfAnswer } from '../items/turn-changes.ts'
import type { AgUiEvent, ToolMessageIds } from './ag-ui-event.ts'
import { argumentsOf, reasoningId } from './ag-ui-event.ts'
import { Invocations } from './invocations.ts'
import { endEvents } from './run-end.ts'
import { TokenUsage } from './token-usage.ts'
import type { AgUiInterrupt } from './interrupts.ts'
import { interruptsOf } from './interrupts.ts'

type TurnEventsOptions = {
  readonly threadId: string
  readonly runId: string
  readonly toolMessageIds: ToolMessageIds
  /** Calls whose results the client has sent with this request: it shows them already. */
  readonly answeredCalls: ReadonlySet<string>
}

/** `retracted`: ids of what the client must forget, which a snapshot of its messages says. */
export type StepEvents = { readonly events: readonly AgUiEvent[]; readonly retracted: readonly string[] }

export class TurnEvents {
  /** The run has ended: nothing may follow. */
  isOver = false
  readonly #options: TurnEventsOptions
  readonly #waiting = new TurnRequests()
  readonly #usage = new TokenUsage()
  readonly #invocations: Invocations
  /** The key is a call, the value the message that has it. */
  readonly #messages = new Map<string, string>()
  /** Texts and reasoning that the client waits for. */
  readonly #open = new Set<string>()
  readonly #forgotten = new Set<string>()
  #lastText = ''
  #out: AgUiEvent[] = []
  #retracted: string[] = []

  constructor(options: TurnEventsOptions) {
    this.#options = options
    this.#invocations = new Invocations((event) => this.#out.push(event))
  }

  /** What was before the turn is read, and not shown. */
  add({ change, event, isOfBefore }: TurnStep): StepEvents {
    this.#out = []
    this.#retracted = []
    this.#invocations.isShown = !isOfBefore
    if (event) this.#read(event, isOfBefore)
    if (change) this.#take(change, isOfBefore)
    return isOfBefore ? { events: [], retracted: [] } : { events: this.#out, retracted: this.#retracted }
  }

  #read(event: Event | TransientEvent, isOfBefore: boolean): void {
    if (event.type === 'AssistantMessage') {
      if (!isOfBefore) this.#usage.add(event)
      for (const id of event.tool_use_ids) this.#messages.set(id, event.message_id)
      if (event.parent_tool_use_id !== undefined) this.#sayWhole(event, event.parent_tool_use_id)
    } else if (event.type === 'SubagentStart') this.#invocations.start(event)
    else if (event.type === 'RequestAnswered' || event.type === 'RequestClosed') this.#waiting.end(event)
    else if ('parent_tool_use_id' in event && event.parent_tool_use_id !== undefined)
      this.#readOfSubagent(event, event.parent_tool_use_id)
  }

  #readOfSubagent(event: Event | TransientEvent, parent: string): void {
    if (event.type === 'ToolUse') {
      this.#invocations.note(event)
      this.#invocations.within(parent, (tag) => this.#call(event, tag))
    } else if (event.type === 'ToolResult') {
      this.#waiting.endCall(event.tool_use_id)
      this.#invocations.endOfCall(event)
      this.#invocations.within(parent, (tag) => this.#result(event, tag))
    } else if (event.type === 'Result') this.#invocations.end(parent, event)
  }

  #take(change: TurnChange, isOfBefore: boolean): void {
    switch (change.type) {
      case 'begun':
        return this.#begin(change.kind, change.messageId, {})
      case 'grown':
        return this.#grow(change.kind, change.messageId, change.text, {})
      case 'complete':
        if (change.kind === 'text') this.#lastText = change.text
        return this.#close(change.kind, change.messageId, {})
      case 'retracted':
        return this.#retract(change.kind, change.messageId)
      case 'call':
        return this.#call(change.call, {})
      case 'result':
        this.#waiting.endCall(change.call.tool_use_id)
        this.#invocations.endOfCall(change.result)
        return this.#result(change.result, {})
      case 'asked':
        return this.#waiting.add(change.request)
      case 'rests':
      case 'ended':
        if (!isOfBefore) this.#end(change)
    }
  }

  #begin(kind: TextKind, messageId: string, tag: object): void {
    const id = idOf(kind, messageId)
    this.#open.add(id)
    if (kind === 'text') return this.#put('TEXT_MESSAGE_START', { messageId, role: 'assistant', ...tag })
    this.#put('REASONING_START', { messageId: id, ...tag })
    this.#put('REASONING_MESSAGE_START', { messageId: id, role: 'reasoning', ...tag })
  }

  #grow(kind: TextKind, messageId: string, delta: string, tag: object): void {
    if (kind === 'text') this.#put('TEXT_MESSAGE_CONTENT', { messageId, delta, ...tag })
    else this.#put('REASONING_MESSAGE_CONTENT', { messageId: reasoningId(messageId), delta, ...tag })
  }

  #close(kind: TextKind, messageId: string, tag: object): void {
    const id = idOf(kind, messageId)
    if (!this.#open.delete(id)) return
    if (kind === 'text') return this.#put('TEXT_MESSAGE_END', { messageId, ...tag })
    this.#put('REASONING_MESSAGE_END', { messageId: id, ...tag })
    this.#put('REASONING_END', { messageId: id, ...tag })
  }

  /** All of the message, at once: reasoning and text are taken back one after the other. */
  #retract(kind: TextKind, messageId: string): void {
    this.#close('reasoning', messageId, {})
    this.#close('text', messageId, {})
    if (!this.#forgotten.has(messageId)) this.#retracted.push(idOf(kind, messageId))
    this.#forgotten.add(messageId)
  }

  /** A text that is only shown when it is complete. */
  #say(kind: TextKind, messageId: string, text: string, tag: object): void {
    if (text === '') return
    this.#begin(kind, messageId, tag)
    this.#grow(kind, messageId, text, tag)
    this.#close(kind, messageId, tag)
  }

  #sayWhole(message: EventOf<'AssistantMessage'>, parent: string): void {
    const { message_id: id } = message
    this.#invocations.within(parent, (tag) => {
      this.#say('reasoning', id, reasoningOfAnswer(message), tag)
      this.#say('text', id, textOfAnswer(message), tag)
    })
  }

  #call({ tool_use_id: toolCallId, name, input }: EventOf<'ToolUse'>, tag: object): void {
    const parentMessageId = this.#messages.get(toolCallId)
    const parent = parentMessageId === undefined ? {} : { parentMessageId }
    this.#put('TOOL_CALL_START', { toolCallId, toolCallName: name, ...parent, ...tag })
    this.#put('TOOL_CALL_ARGS', { toolCallId, delta: argumentsOf(input), ...tag })
    this.#put('TOOL_CALL_END', { toolCallId, ...tag })
  }

  #result(result: EventOf<'ToolResult'>, tag: object): void {
    const { tool_use_id: toolCallId, id } = result
    const { answeredCalls, toolMessageIds } = this.#options
    if (answeredCalls.has(toolCallId)) return
    const messageId = toolMessageIds.get(toolCallId) ?? id
    this.#put('TOOL_CALL_RESULT', { messageId, toolCallId, role: 'tool', content: contentOfResult(result), ...tag })
  }

  #end(change: Extract<TurnChange, { type: 'rests' | 'ended' }>): void {
    const { threadId, runId } = this.#options
    const usage = this.#usage.list()
    if (change.type === 'ended') {
      const { final_text: text, id } = change.result
      if (/\S/.test(text) && text.trim() !== this.#lastText.trim()) this.#say('text', id, text, {})
    }
    const interrupts =
      change.type === 'rests' ? openInterrupts(this.#waiting, (id) => this.#invocations.idOf(id)) : undefined
    this.#invocations.endAll(interrupts)
    const pendingIds = pendingToolCallIds(this.#waiting)
    this.#out.push(endEvents(change, { threadId, runId, usage, interrupts, pendingToolCallIds: pendingIds }))
    this.isOver = true
  }

  #put(type: string, fields: object): void {
    this.#out.push({ type, ...fields })
  }
}

const idOf = (kind: TextKind, messageId: string): string => (kind === 'text' ? messageId : reasoningId(messageId))

/** What the agent reads of a failure is in its text, if it has any. */
export function contentOfResult({ output, is_error: isError, error_message: message }: EventOf<'ToolResult'>): string {
  const text = outputText(output)
  return isError && message !== undefined && text === '' ? message : text
}

/** `subagentOf`: the invocation that a `Task` call has begun. */
function openInterrupts(waiting: TurnRequests, subagentOf: (parent: string) => string | undefined): AgUiInterrupt[] {
  return waiting.list().flatMap(({ request, calls }) => {
    const { parent_tool_use_id: parent } = request
    const subagentRunId = parent === undefined ? undefined : subagentOf(parent)
    return isForPeople(request) ? interruptsOf(request, calls, subagentRunId) : []
  })
}

/** The calls of frontend tools. */
function pendingToolCallIds(waiting: TurnRequests): string[] {
  return waiting.list().flatMap(({ request, calls }) => (request.kind === 'client_tool' ? [...calls] : []))
}
