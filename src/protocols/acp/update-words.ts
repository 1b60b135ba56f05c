/** Updates in the words of version 2 of the protocol: what was a first message and changes of it is one upsert there. */
import type * as v1 from '@agentclientprotocol/sdk'
import type * as v2 from '@agentclientprotocol/sdk/experimental/v2'
import { fence } from './call-form.ts'
import type { EditorMcpServer } from './mcp-input.ts'

/** Thoughts have their own ids: in this version a message is one thing. */
export const thoughtId = (messageId: string): string => `${messageId}-thought`

/** The agent has one task list. */
const PLAN_ID = 'tasks'

/** Returns none for what this version has no word for. */
export function inVersion2(update: v1.SessionUpdate): v2.SessionUpdate[] {
  switch (update.sessionUpdate) {
    case 'agent_message_chunk': {
      const { sessionUpdate, messageId, content } = update
      return [{ sessionUpdate, messageId: messageId ?? '', content: blockOf(content) }]
    }
    case 'agent_thought_chunk': {
      const { sessionUpdate, messageId, content } = update
      return [{ sessionUpdate, messageId: thoughtId(messageId ?? ''), content: blockOf(content) }]
    }
    case 'tool_call':
    case 'tool_call_update': {
      const { sessionUpdate: _, ...call } = update
      return [{ sessionUpdate: 'tool_call_update', ...callInVersion2(call) }]
    }
    case 'plan': {
      const entries = update.entries.map(({ content, priority, status }) => ({ content, priority, status }))
      return [{ sessionUpdate: 'plan_update', plan: { type: 'items', planId: PLAN_ID, entries } }]
    }
    case 'available_commands_update':
      return [{ ...update, availableCommands: update.availableCommands.map(commandOf) }]
    case 'config_option_update':
      return [{ ...update, configOptions: optionsInVersion2(update.configOptions) }]
    case 'session_info_update':
    case 'usage_update':
    case 'notice':
      return [update]
    // The mode is an option.
    case 'current_mode_update':
      return []
    default:
      return []
  }
}

export function callInVersion2({ content, kind, ...call }: v1.ToolCallUpdate): v2.ToolCallUpdate {
  return {
    ...call,
    ...(kind !== undefined && kind !== null && { kind }),
    ...(content !== undefined && content !== null && { content: content.flatMap(contentOf) }),
  }
}

/**
 * A change that has not been made yet is shown as text: whether a file is added or modified, and in which lines, is known when
 * it was written.
 */
function contentOf(content: v1.ToolCallContent): v2.ToolCallContent[] {
  if (content.type === 'content') return [{ type: 'content', content: blockOf(content.content) }]
  if (content.type !== 'diff') return []
  const { path, oldText, newText } = content
  const lines = [...markedLines('-', oldText ?? ''), ...markedLines('+', newText)]
  return [textContent(fence([path, ...lines].join('\n'), 'diff'))]
}

const markedLines = (mark: string, text: string): string[] =>
  text === ''
    ? []
    : text
        .replace(/\n$/, '')
        .split('\n')
        .map((line) => mark + line)

const textContent = (text: string): v2.ToolCallContent => ({ type: 'content', content: textBlock(text) })

export const textBlock = (text: string): v2.ContentBlock => ({ type: 'text', text })

/** This server makes texts and images only. */
function blockOf(block: v1.ContentBlock): v2.ContentBlock {
  if (block.type === 'image') return { type: 'image', mimeType: block.mimeType, data: block.data }
  return textBlock(block.type === 'text' ? block.text : '')
}

const commandOf = ({ name, description, input }: v1.AvailableCommand): v2.AvailableCommand => ({
  type: 'command',
  name,
  description,
  ...(input && 'hint' in input && { input: { type: 'text', hint: input.hint } }),
})

/** Blocks of types that are not known are refused later, by their names. */
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types that both versions know are the same
export const blocksInVersion1 = (blocks: readonly v2.ContentBlock[]) => blocks as readonly v1.ContentBlock[]

/** The same for the servers. */
export const serversInVersion1 = (servers: readonly v2.McpServer[] = []) =>
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- see above
  servers as readonly EditorMcpServer[]

export const optionsInVersion2 = (options: readonly v1.SessionConfigOption[]): v2.SessionConfigOption[] =>
  options.flatMap(({ id: configId, name, category, ...option }) => {
    const nameFields = { configId, name, ...(category && { category }) }
    if (option.type !== 'select') return []
    const { currentValue, options: values } = option
    const choices = values.flatMap((value) =>
      'value' in value
        ? { value: value.value, name: value.name, ...(value.description && { description: value.description }) }
        : [],
    )
    return { ...nameFields, type: 'select' as const, currentValue, options: choices }
  })
