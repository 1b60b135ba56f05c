/** A conversation as Markdown: what was said and done, in order. */
import { titleOf } from '../../contract/events/call-title.ts'
import { outputText } from '../../contract/values/output-text.ts'
import { ansiRuns } from '../text/ansi.ts'
import { fenceText, inertMarkdown } from '../text/inert-markdown.ts'
import { short, visible, visibleProse } from '../text/visible.ts'
import type { Event, EventOf } from '../../contract/events/event.ts'
import type { ConversationHandle } from '../../client/client.ts'

/** Longer outputs are cut: the files have them. */
const MAX_OUTPUT_CHARS = 4000
/** Longer messages are cut, too. Images are not read. */
const MAX_TEXT = 100_000
/** The page keeps so many characters in memory before the browser gets them. */
const PART_CHARS = 1_000_000

/**
 * Returns the document as a file of the browser, which keeps it outside of the memory of the page, however long the
 * conversation is. `onEvent` is called with the number of each event that was read.
 */
export async function exportOf(
  conversation: ConversationHandle,
  title: string,
  { onEvent }: { readonly onEvent?: (seq: number) => void } = {},
): Promise<Blob> {
  const blobs: Blob[] = []
  let parts: string[] = []
  let length = 0
  const flush = () => {
    blobs.push(new Blob(parts))
    parts = []
    length = 0
  }
  for await (const part of markdownOf(conversation, title, onEvent)) {
    parts.push(part)
    length += part.length
    if (length > PART_CHARS) flush()
  }
  flush()
  return new Blob(blobs, { type: 'text/markdown' })
}

async function* markdownOf(
  conversation: ConversationHandle,
  title: string,
  onEvent: ((seq: number) => void) | undefined,
): AsyncGenerator<string> {
  yield `# ${inertMarkdown(short(title))}\n`
  const query = { active: true, limit: 500, max_text: MAX_TEXT, types: TYPES }
  for await (const event of conversation.listEvents(query)) {
    onEvent?.(event.seq)
    const part = partOf(event)
    if (part !== undefined) yield `\n${part}\n`
  }
}

const TYPES = ['UserMessage', 'AssistantMessage', 'ToolUse', 'ToolResult', 'ErrorEvent'] as const

function partOf(event: EventOf<(typeof TYPES)[number]>): string | undefined {
  switch (event.type) {
    case 'UserMessage': {
      const texts = event.content.map((part) => (part.type === 'text' ? part.text : `[image: ${part.media_type}]`))
      return `## User\n\n${quote(texts.join('\n\n'))}${cutNote(event)}`
    }
    case 'AssistantMessage':
      return event.text === '' ? undefined : `## Agent\n\n${quote(event.text)}${cutNote(event)}`
    case 'ToolUse':
      return `**${inertMarkdown(short(event.name))}**\n\n${fenceText(visible(titleOf(event.name, event.input)))}`
    case 'ToolResult':
      return fenceOutput(event.error_message ?? outputText(event.output))
    case 'ErrorEvent':
      return `Error: ${inertMarkdown(short(event.message))}`
  }
}

/** What was said cannot look like a heading of the document. */
const quote = (text: string): string =>
  inertMarkdown(withoutEscapes(text))
    .split('\n')
    .map((line) => `> ${line}`)
    .join('\n')

/** Somebody reads the document in a terminal: nothing in it controls one. */
const withoutEscapes = (text: string): string =>
  // oxlint-disable-next-line no-control-regex -- controls are what is looked for
  visibleProse(text).replaceAll(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g, visible)

const cutNote = ({ cut_texts }: Event): string =>
  (cut_texts ?? [])
    .filter(({ media_type }) => media_type === undefined)
    .map(({ characters }) => `\n\n[${characters} characters in all]`)
    .join('')

function fenceOutput(output: string): string {
  const text = ansiRuns(output.slice(0, MAX_OUTPUT_CHARS))
    .map((run) => run.text)
    .join('')
  return `${fenceText(text)}${output.length > MAX_OUTPUT_CHARS ? `\n\n[${output.length} characters in all]` : ''}`
}
