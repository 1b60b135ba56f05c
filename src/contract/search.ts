/** The search over the events of all conversations. */
import { z } from 'zod'

export const SearchEvents = z.strictObject({
  q: z
    .string()
    .min(1)
    .max(500)
    .describe(
      'Words, of which an event must have all, in any order. Each also finds longer words that begin with it. Case, accents and punctuation do not matter.',
    ),
  limit: z.coerce.number().int().min(1).max(100).default(20),
  page_id: z.string().optional().describe('`next_page_id` of the previous page.'),
})
export type SearchEvents = z.infer<typeof SearchEvents>

const MatchedRange = z
  .object({ start: z.int().nonnegative(), end: z.int().positive().describe('Exclusive.') })
  .meta({ id: 'MatchedRange', description: 'Where a word was found, in UTF-16 code units of the snippet.' })

export const FoundEvent = z
  .object({
    conversation_id: z.uuid(),
    title: z.string().optional().describe('Of the conversation.'),
    event_id: z.uuid(),
    seq: z.int().positive(),
    type: z.string().describe('`UserMessage`, `AssistantMessage`, `ToolUse` or `ToolResult`.'),
    timestamp: z.iso.datetime(),
    snippet: z.string().describe('A part of the text, as it is in the event.'),
    matches: z.array(MatchedRange).describe('In order.'),
  })
  .meta({ id: 'FoundEvent' })
export type FoundEvent = z.infer<typeof FoundEvent>

export const FoundEvents = z
  .object({
    items: z.array(FoundEvent),
    next_page_id: z.string().nullable(),
    is_complete: z
      .boolean()
      .describe('`false` while events are still being indexed, such as in the first search: search again later.'),
  })
  .meta({
    id: 'FoundEvents',
    examples: [
      {
        items: [
          {
            conversation_id: '0199a1f0-5c3e-7d12-9b1a-2f6d8c40a7e1',
            title: 'totals',
            event_id: '0199a1f0-5c3e-7d12-9b1a-2f6d8c40a7e2',
            seq: 2,
            type: 'UserMessage',
            timestamp: '2026-01-31T12:00:00.000Z',
            snippet: 'Write total.sh, which adds up a CSV file.',
            matches: [{ start: 6, end: 11 }],
          },
        ],
        next_page_id: null,
        is_complete: true,
      },
    ],
  })
export type FoundEvents = z.infer<typeof FoundEvents>
