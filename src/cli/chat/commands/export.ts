/** `/export`: the whole conversation as Markdown, in a new file on the machine of the chat. */
import { open } from 'node:fs/promises'
import { homedir } from 'node:os'
import { resolve } from 'node:path'
import type { ConversationHandle } from '../../../client/conversation/conversation-handle.ts'
import type { Event } from '../../../contract/events/event.ts'
import { textOfParts } from '../../../contract/values/output-text.ts'
import { cleanLine, savedText } from '../state/clean-text.ts'
import { resultOf } from '../../../contract/values/output-text.ts'
import type { ChatContext } from './command.ts'

const PAGE = 500
const SHORT_ID = 8

export async function exportConversation({ session, options }: ChatContext, givenPath: string): Promise<void> {
  const { conversation, view } = session
  const name =
    givenPath === '' ? `conversation-${view.id.slice(-SHORT_ID)}.md` : givenPath.replace(/^~(?=\/)/, homedir())
  const path = resolve(options.directory, name)
  const file = await open(path, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
    const why = error.code === 'EEXIST' ? 'exists already' : `cannot be written (${error.code ?? error.message})`
    throw new Error(`${path} ${why}; give another name: /export FILE.`)
  })
  await using _closing = file
  await file.write(`# ${cleanLine(session.state.title)}\n`)
  for await (const event of allEvents(conversation)) {
    const text = markdownOf(event)
    if (text !== undefined) await file.write(`\n${savedText(text).trimEnd()}\n`)
  }
  session.say(`The conversation was written to ${path}.`)
}

async function* allEvents(conversation: ConversationHandle): AsyncGenerator<Event> {
  for (let after_seq = 0; ;) {
    const { items } = await conversation.listEvents({ after_seq, limit: PAGE, order: 'asc' })
    yield* items
    const last = items.at(-1)
    if (!last) return
    after_seq = last.seq
  }
}

function markdownOf(event: Event): string | undefined {
  const by = 'agent_name' in event && event.agent_name !== undefined ? ` (${event.agent_name})` : ''
  switch (event.type) {
    case 'UserMessage':
      return `## User\n\n${textOfParts(event.content)}`
    case 'AssistantMessage':
      return event.text.trim() === '' ? undefined : `## Agent${by}\n\n${event.text}`
    case 'ToolUse':
      return `### ${event.name}${by}\n\n${fence(JSON.stringify(event.input, null, 2), 'json')}`
    case 'ToolResult':
      return fence(resultOf(event))
    case 'ErrorEvent':
      return `**Error:** ${event.message}`
    default:
      return undefined
  }
}

/** The fence is longer than any in the text. */
function fence(text: string, language = ''): string {
  const longest = Math.max(2, ...[...text.matchAll(/`{3,}/g)].map(([marks]) => marks.length))
  const fence = '`'.repeat(longest + 1)
  return `${fence}${language}\n${text.trimEnd()}\n${fence}`
}
