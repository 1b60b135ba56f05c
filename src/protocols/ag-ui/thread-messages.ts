/** The messages of a thread, from the log: what a client is shown that does not have them. */
import type { Event, EventOf } from '../../contract/events/event.ts'
import { holds } from '../../contract/events/rewound.ts'
import type { UserPart } from '../../contract/values/message.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import { readPages } from '../../events/read-pages.ts'
import { reasoningOfAnswer, textOfAnswer } from '../items/turn-changes.ts'
import type { AgUiMessage, ToolMessageIds } from './ag-ui-event.ts'
import { argumentsOf, idOfUserMessage, partsOfUserMessage, reasoningId, subagentRunIdOf } from './ag-ui-event.ts'
import { contentOfResult } from './turn-events.ts'

/** The oldest are left out. Clients read at most 10 MiB at once. */
const MAX_CHARS = 4 * 1024 * 1024
const PAGE = 256
const SHOWN: ReadonlySet<string> = new Set([
  'UserMessage',
  'MessageWithdrawn',
  'AssistantMessage',
  'ToolUse',
  'ToolResult',
  'SubagentStart',
  'Result',
])

/** Returns the messages that hold, up to the event `through`. */
export async function threadMessages(
  { log, state }: Conversation,
  through: number,
  toolMessageIds: ToolMessageIds,
): Promise<readonly AgUiMessage[]> {
  const withdrawn = new Set<number>()
  const newestFirst: Event[] = []
  let room = MAX_CHARS
  for await (const { events } of readPages(log, { beforeSeq: through + 1, types: SHOWN, order: 'desc', limit: PAGE })) {
    for (const { event } of events) {
      if (event.type === 'MessageWithdrawn') withdrawn.add(event.message_seq)
      else if (!withdrawn.has(event.seq) && holds(state.rewound, event)) newestFirst.push(event)
      room -= JSON.stringify(event).length
      if (room < 0) break
    }
    if (room < 0) break
  }
  const messages = new MessageList(toolMessageIds)
  for (const event of newestFirst.toReversed()) messages.add(event)
  return messages.all
}

type AssistantMessage = AgUiMessage & { toolCalls?: object[] }

class MessageList {
  readonly all: AgUiMessage[] = []
  readonly #toolMessageIds: ToolMessageIds
  readonly #messageByCall = new Map<string, AssistantMessage>()
  /** The key is the `Task` call. */
  readonly #subagents = new Map<string, string>()
  #lastText = ''

  constructor(toolMessageIds: ToolMessageIds) {
    this.#toolMessageIds = toolMessageIds
  }

  add(event: Event): void {
    if (event.type === 'UserMessage') this.all.push(userMessage(event))
    else if (event.type === 'SubagentStart') this.#note(event)
    else {
      const tag = this.#tagOf(event)
      if (tag) this.#addOfAgent(event, tag)
    }
  }

  #note(start: EventOf<'SubagentStart'>): void {
    if (!start.background) this.#subagents.set(start.parent_tool_use_id, subagentRunIdOf(start))
  }

  /** Undefined for what is not shown. */
  #tagOf(event: Event): { readonly subagentRunId?: string } | undefined {
    const parent = 'parent_tool_use_id' in event ? event.parent_tool_use_id : undefined
    if (parent === undefined) return {}
    const subagentRunId = this.#subagents.get(parent)
    return subagentRunId === undefined ? undefined : { subagentRunId }
  }

  #addOfAgent(event: Event, tag: { readonly subagentRunId?: string }): void {
    switch (event.type) {
      case 'AssistantMessage':
        return this.#answer(event, tag)
      case 'ToolUse':
        this.#messageByCall.get(event.tool_use_id)?.toolCalls?.push({
          id: event.tool_use_id,
          type: 'function',
          function: { name: event.name, arguments: argumentsOf(event.input) },
        })
        return
      case 'ToolResult': {
        const { id, tool_use_id: toolCallId } = event
        const messageId = this.#toolMessageIds.get(toolCallId) ?? id
        this.all.push({ id: messageId, role: 'tool', toolCallId, content: contentOfResult(event), ...tag })
        return
      }
      case 'Result':
        if (tag.subagentRunId === undefined && event.background_agent_id === undefined) this.#end(event)
        return
      default:
    }
  }

  #answer(event: EventOf<'AssistantMessage'>, tag: { readonly subagentRunId?: string }): void {
    const { message_id: id, tool_use_ids: calls } = event
    const [reasoning, text] = [reasoningOfAnswer(event), textOfAnswer(event)]
    if (reasoning !== '') this.all.push({ id: reasoningId(id), role: 'reasoning', content: reasoning, ...tag })
    if (text !== '' && tag.subagentRunId === undefined) this.#lastText = text
    if (text === '' && calls.length === 0) return
    const message: AssistantMessage = {
      id,
      role: 'assistant',
      ...(text !== '' && { content: text }),
      ...(calls.length > 0 && { toolCalls: [] }),
      ...tag,
    }
    for (const call of calls) this.#messageByCall.set(call, message)
    this.all.push(message)
  }

  #end({ id, final_text: text }: EventOf<'Result'>): void {
    if (/\S/.test(text) && text.trim() !== this.#lastText.trim())
      this.all.push({ id, role: 'assistant', content: text })
  }
}

function userMessage(event: EventOf<'UserMessage'>): AgUiMessage {
  const { ownParts: parts } = partsOfUserMessage(event)
  const [first] = parts
  const content = parts.length === 1 && first?.type === 'text' ? first.text : parts.map(contentPartOf)
  return { id: idOfUserMessage(event), role: 'user', content }
}

const contentPartOf = (part: UserPart): object =>
  part.type === 'text'
    ? { type: 'text', text: part.text }
    : { type: 'image', source: { type: 'data', value: part.data, mimeType: part.media_type } }
