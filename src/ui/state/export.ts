/** A conversation as Markdown: what was said and done, in order. */
import { titleOf } from '../../contract/events/call-title.ts'
import { outputText } from '../../contract/events/output-text.ts'
import { short, visibleProse } from '../text/visible.ts'
import type { Event } from '../../contract/events/event.ts'
import type { ConversationHandle } from '../../client/client.ts'

/** Longer outputs are cut: the files have them. */
const MAX_OUTPUT_CHARS = 4000

export async function markdownOf(conversation: ConversationHandle, title: string): Promise<string> {
  const parts = [`# ${short(title)}`]
  for await (const event of conversation.listEvents({ active: true, limit: 500 })) {
    const part = partOf(event)
    if (part !== undefined) parts.push(part)
  }
  return `${parts.join('\n\n')}\n`
}

function partOf(event: Event): string | undefined {
  switch (event.type) {
    case 'UserMessage': {
      const texts = event.content.map((part) => (part.type === 'text' ? part.text : `[image: ${part.media_type}]`))
      return `## User\n\n${quote(texts.join('\n\n'))}`
    }
    case 'AssistantMessage':
      return event.text === '' ? undefined : `## Agent\n\n${quote(event.text)}`
    case 'ToolUse':
      return `**${short(event.name)}**\n\n${fenceText(titleOf(event.input))}`
    case 'ToolResult':
      return fenceText((event.error_message ?? outputText(event.output)).slice(0, MAX_OUTPUT_CHARS))
    case 'ErrorEvent':
      return `Error: ${short(event.message)}`
    default:
      return undefined
  }
}

/** What was said cannot look like a heading of the document. In Markdown, a carriage return alone ends a line, too. */
const quote = (text: string): string =>
  visibleProse(text)
    .split(/\r\n?|\n/)
    .map((line) => `> ${line}`)
    .join('\n')

/** A fence that is longer than any in the text. */
function fenceText(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length))
  const fence = '`'.repeat(longest + 1)
  return `${fence}\n${text}\n${fence}`
}
