/**
 * Folds events into the messages that the model reads. It only ever appends, so that each request extends the previous
 * one byte for byte.
 */
import type { Event, EventOf, EventType } from '../contract/events/event.ts'
import type { ImagePart, UserPart } from '../contract/message.ts'
import { isToReturn, partsOfOutput, textOfParts } from '../contract/message.ts'
import type { LlmRequest, ModelMessage, ModelToolCall } from '../llm/llm.ts'

/** Renders a tool's stored output for the model, by the tool's name. */
export type RenderOutput = (toolName: string, output: unknown) => string

export interface History {
  readonly system: string
  /** Only grows; existing messages never change. */
  readonly messages: readonly ModelMessage[]
  /** Returns the messages for a request now: the last one is from the user or a tool result, as endpoints require. */
  messagesToSend(): readonly ModelMessage[]
  /** Adds an event. Call it with each event once, in the order of the log. */
  add(event: Event): void
}

/** The event types that the model's history consists of. */
const IS_SENT = {
  SystemInit: true,
  ForkedFrom: true,
  UserMessage: true,
  AssistantMessage: true,
  ToolUse: true,
  ToolResult: true,
  PermissionRequest: false,
  PermissionDecision: false,
  UserQuestion: false,
  UserAnswer: false,
  StatusUpdate: false,
  ConfigUpdate: false,
  SecretsUpdate: false,
  FileUpdate: false,
  CommandResult: false,
  TaskUpdate: false,
  ClientEvent: false,
  NetworkRequest: false,
  NetworkDecision: false,
  NetworkAccess: false,
  HookEvent: true,
  OutputRequest: true,
  ModelRetry: false,
  ErrorEvent: false,
  Result: false,
} as const satisfies Record<EventType, boolean>

type SentType = { [T in EventType]: (typeof IS_SENT)[T] extends true ? T : never }[EventType]

const isSent = (event: Event): event is EventOf<SentType> => IS_SENT[event.type]

/** A reader that builds a history needs only these types. */
export const HISTORY_TYPES: ReadonlySet<string> = new Set(
  Object.entries(IS_SENT).flatMap(([type, sent]) => (sent ? [type] : [])),
)

export function createHistory(render: RenderOutput): History {
  const messages: ModelMessage[] = []
  let system = ''
  // An answer's calls and their results must be adjacent, whatever the log has in between: messages of the open turn
  // are kept here until every call has its result.
  let turn: OpenTurn | undefined
  const held: ModelMessage[] = []

  const push = (message: ModelMessage) => void (turn ? held : messages).push(message)
  /** Starting a run without a message asks the agent to continue; the answers then have no request in between. */
  const takeTurns = () => {
    const last = messages.at(-1)
    if (!last || last.role === 'assistant') messages.push(CONTINUE)
  }

  const settle = () => {
    if (!turn || turn.results.size < turn.callIds.length) return
    takeTurns()
    messages.push({ role: 'assistant', ...turn.words, toolCalls: turn.calls })
    messages.push(...turn.callIds.flatMap((id) => turn?.results.get(id) ?? []))
    const images = turn.callIds.flatMap((id) => turn?.images.get(id) ?? [])
    // In some APIs a tool's message accepts text only, and nothing may be between the results of a turn.
    if (images.length) messages.push(repeatImages(images))
    turn = undefined
    messages.push(...held.splice(0))
  }

  return {
    get system() {
      return system
    },
    messages,
    messagesToSend() {
      takeTurns()
      return messages
    },
    add(event) {
      if (!isSent(event)) return
      if ('parent_tool_use_id' in event && event.parent_tool_use_id) return // it belongs to the history of a subagent
      switch (event.type) {
        case 'SystemInit':
          system = event.system_prompt
          return
        case 'ForkedFrom':
          if (event.cwd !== event.from_cwd) push({ role: 'user', content: [{ type: 'text', text: tellMove(event) }] })
          return
        case 'UserMessage':
          return push({ role: 'user', content: [...sayable(withCommand(event)), ...contextOf(event)] })
        case 'HookEvent':
          // What hooks say about a call is part of its result.
          if (event.tool_use_id === undefined && event.context) push({ role: 'user', content: contextOf(event) })
          return
        case 'OutputRequest':
          return push({ role: 'user', content: [{ type: 'text', text: askForOutput(event) }] })
        case 'AssistantMessage':
          if (event.tool_use_ids.length) turn = openTurn(event)
          // A message without text or calls contains nothing, and providers refuse it.
          else if (event.text.trim()) {
            if (!turn) takeTurns()
            push({ role: 'assistant', ...wordsOf(event), toolCalls: [] })
          }
          return
        case 'ToolUse':
          turn?.calls.push(toModelCall(event))
          turn?.names.set(event.tool_use_id, event.name)
          return
        case 'ToolResult':
          if (!turn?.callIds.includes(event.tool_use_id)) return
          turn.results.set(event.tool_use_id, toToolMessage(event, turn.names.get(event.tool_use_id) ?? '', render))
          turn.images.set(event.tool_use_id, imagesOf(event))
          return settle()
        default:
          event satisfies never
      }
    },
  }
}

const CONTINUE: ModelMessage = { role: 'user', content: [{ type: 'text', text: 'Continue.' }] }

/** The text of a slash command replaces the words that called it. */
function withCommand({ content, slash_command: command }: EventOf<'UserMessage'>): readonly UserPart[] {
  return command ? [{ type: 'text', text: command.text }, ...content.slice(1)] : content
}

/** Providers refuse text that is only white space; older servers accepted such messages. */
function sayable(content: readonly UserPart[]): readonly UserPart[] {
  const kept = content.filter((part) => part.type !== 'text' || part.text.trim() !== '')
  return kept.length ? kept : [{ type: 'text', text: '[an empty message]' }]
}

const contextOf = ({ context }: { readonly context?: string | undefined }): UserPart[] =>
  context?.trim() ? [{ type: 'text', text: context }] : []

/** Appended as a message: the prompt before it is unchanged, and with it the provider's cache. */
function tellMove({ from_cwd, cwd }: EventOf<'ForkedFrom'>): string {
  return `[This is a copy of an earlier conversation. Your working directory is now ${cwd}, a copy of ${from_cwd}: wherever that was said above, use ${cwd} from here on, and leave ${from_cwd} alone. Shells and background processes of before are gone.]`
}

function repeatImages(images: readonly ImagePart[]): ModelMessage {
  return { role: 'user', content: [{ type: 'text', text: IMAGES_OF_TOOLS }, ...images], repeatsImages: true }
}

function askForOutput({ output_schema, fault }: EventOf<'OutputRequest'>): string {
  const wanted = 'only with JSON that is valid for the schema, without any other text'
  if (fault !== undefined) return `[Your answer is not valid: ${fault}. Answer again, ${wanted}.]`
  return `[When you have finished, answer ${wanted}. The JSON Schema is:\n${JSON.stringify(output_schema)}]`
}

const IMAGES_OF_TOOLS = 'Here are the images of the tool results above, in their order.'

type Words = Pick<Extract<ModelMessage, { role: 'assistant' }>, 'text' | 'reasoning' | 'parts'>

type OpenTurn = {
  readonly words: Words
  readonly callIds: readonly string[]
  readonly calls: ModelToolCall[]
  readonly names: Map<string, string>
  readonly results: Map<string, ModelMessage>
  readonly images: Map<string, readonly ImagePart[]>
}

function openTurn(event: EventOf<'AssistantMessage'>): OpenTurn {
  return {
    words: wordsOf(event),
    callIds: event.tool_use_ids,
    calls: [],
    names: new Map(),
    results: new Map(),
    images: new Map(),
  }
}

function wordsOf({ text, content }: EventOf<'AssistantMessage'>): Words {
  const thoughts = content.filter((part) => part.type === 'reasoning')
  const reasoning = thoughts.flatMap((part) => part.text || []).join('\n\n')
  return {
    text: text.trim() === '' ? '' : text,
    ...(reasoning && { reasoning }),
    ...(content.some(isToReturn) && { parts: content }),
  }
}

/**
 * Shows arguments that were not a JSON object to the model as it sent them, inside valid JSON: some endpoints parse
 * them.
 */
function toModelCall(event: EventOf<'ToolUse'>): ModelToolCall {
  const input = typeof event.input === 'string' ? { invalid_arguments: event.input } : event.input
  return { id: event.tool_use_id, name: event.name, arguments: JSON.stringify(input ?? {}) }
}

function toToolMessage(event: EventOf<'ToolResult'>, toolName: string, render: RenderOutput): ModelMessage {
  const parts = partsOfOutput(event.output)
  const text = parts ? textOfParts(parts) : render(toolName, event.output)
  const error =
    event.is_error && event.error_message && !text.includes(event.error_message)
      ? `Error: ${event.error_message}\n`
      : ''
  const changed =
    event.ran_input === undefined
      ? ''
      : `[${event.changed_by === 'hook' ? 'A hook' : 'The user'} changed this call. What ran is ${JSON.stringify(event.ran_input)}]\n`
  const context = event.context === undefined ? '' : `\n\n${event.context}`
  const advice = event.advice === undefined ? '' : `\n\n[${event.advice}]`
  const content = `${changed}${error}${text}`
  const shown = content.trim() ? content : content ? '[white space only]' : '[no output]'
  const images = imagesOf(event)
  return {
    role: 'tool',
    toolCallId: event.tool_use_id,
    content: `${shown}${context}${advice}`,
    ...(images.length > 0 && { images }),
    ...(event.is_error && { isError: true }),
  }
}

function imagesOf({ output }: EventOf<'ToolResult'>): readonly ImagePart[] {
  return (partsOfOutput(output) ?? []).filter((part) => part.type === 'image')
}

/** Describes what is invalid in a request; empty if every provider would accept it. */
export function findFaults({ messages }: Pick<LlmRequest, 'messages'>): string[] {
  const faults: string[] = []
  let expected: string[] = []
  messages.forEach((message, at) => {
    const fault = (text: string) => faults.push(`message ${at} (${message.role}): ${text}`)
    if (message.role === 'tool') {
      const wanted = expected.shift()
      if (wanted !== message.toolCallId) fault(`result of ${message.toolCallId} where ${wanted ?? 'none'} was expected`)
      if (!message.content.trim()) fault('empty text')
      return
    }
    for (const id of expected) fault(`call ${id} before it has no result`)
    expected = []
    if (at === 0 && message.role !== 'user') fault('the first message is not the user’s')
    if (message.role === 'user' && !message.content.length) fault('no content')
    if (message.role === 'user' && message.content.some((part) => part.type === 'text' && !part.text.trim()))
      fault('empty text')
    if (message.role === 'assistant') {
      if (messages[at - 1]?.role === 'assistant') fault('an answer behind an answer')
      expected = message.toolCalls.map((call) => call.id)
      if (new Set(expected).size < expected.length) fault('two calls share an id')
      if (!message.text.trim() && !expected.length) fault('neither text nor calls')
    }
  })
  for (const id of expected) faults.push(`call ${id} at the end has no result`)
  return faults
}
