/**
 * Selects the texts of a log that the search finds: what users and agents say, and the beginning and end of what tools
 * get and return.
 */
import type { Event } from '../../contract/events/event.ts'
import type { RewoundSpan } from '../../contract/events/rewound.ts'
import type { StoredEvent } from '../../events/event-store.ts'
import type { Slices } from '../../lib/time-slices.ts'
import type { IndexedEvent } from '../../storage/search-index.ts'
import { indexedWords } from './words.ts'

/** Other events are not read. The last two say what is found no more. */
export const SEARCHED_TYPES: ReadonlySet<string> = new Set<Event['type']>([
  'UserMessage',
  'AssistantMessage',
  'ToolUse',
  'ToolResult',
  'Rewound',
  'MessageWithdrawn',
])

/** Characters of an event, so that outputs of tools do not fill the index. */
const MAX_MESSAGE = 16_000
const MAX_TOOL = 2000
/** Characters of words of a tool's event, or an eighth of the event if that is more: hashes would fill the index, too. */
const MIN_WORDS = 300

/** Returns the texts of an event, cut. */
export function searchedTexts(event: Event): string[] {
  switch (event.type) {
    case 'UserMessage':
      return within(MAX_MESSAGE, event.content)
    case 'AssistantMessage':
      return within(MAX_MESSAGE, event.text)
    case 'ToolUse':
      return within(MAX_TOOL, [event.name, event.input])
    case 'ToolResult':
      return within(MAX_TOOL, [event.error_message, event.output])
    default:
      return []
  }
}

function within(limit: number, value: unknown): string[] {
  const texts: string[] = []
  let remainingChars = limit
  for (const text of textsIn(value)) {
    if (text.length > remainingChars) {
      texts.push(text.slice(0, remainingChars / 2), text.slice(text.length - remainingChars / 2))
      break
    }
    texts.push(text)
    remainingChars -= text.length
  }
  return texts
}

/** Names of fields are not texts, and images have none. */
function* textsIn(value: unknown): Generator<string> {
  const open: unknown[] = [value]
  // A list instead of recursion, so that everything that could be stored can be read.
  while (open.length > 0) {
    const next = open.pop()
    if (typeof next === 'string') yield next
    if (typeof next !== 'object' || next === null || ('type' in next && next.type === 'image')) continue
    open.push(...Object.values(next).toReversed())
  }
}

/** What a page of a log adds to the index, and takes from it. */
export type SearchedPage = { readonly removed: readonly RewoundSpan[]; readonly events: readonly IndexedEvent[] }

/** What was rewound or withdrawn is left out. */
export async function searchedPage(events: readonly StoredEvent[], slices: Slices): Promise<SearchedPage> {
  const removedSpans: RewoundSpan[] = []
  let keptEvents: IndexedEvent[] = []
  for (const { event, json } of events) {
    await slices.rest()
    const span = endedBy(event)
    if (span) {
      removedSpans.push(span)
      keptEvents = keptEvents.filter(({ seq }) => seq <= span.afterSeq || seq >= span.beforeSeq)
      continue
    }
    const isTool = event.type === 'ToolUse' || event.type === 'ToolResult'
    const words = indexedWords(searchedTexts(event), isTool ? Math.max(MIN_WORDS, json.length / 8) : Infinity)
    if (words !== '') keptEvents.push({ seq: event.seq, at: Date.parse(event.timestamp), words })
  }
  return { removed: removedSpans, events: keptEvents }
}

function endedBy(event: Event): RewoundSpan | undefined {
  if (event.type === 'Rewound') return { afterSeq: event.to_seq, beforeSeq: event.seq }
  if (event.type !== 'MessageWithdrawn') return undefined
  return { afterSeq: event.message_seq - 1, beforeSeq: event.message_seq + 1 }
}
