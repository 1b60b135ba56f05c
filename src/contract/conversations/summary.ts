/** A row of a list of conversations: what a list shows, from memory. */
import { z } from 'zod'
import { Status } from '../events/status.ts'

const CurrentCall = z
  .object({
    tool_use_id: z.string(),
    name: z.string().describe('The tool.'),
    target: z.string().optional().describe('What says best what it does: its command, path, URL or query.'),
  })
  .meta({ id: 'CurrentCall' })
export type CurrentCall = z.infer<typeof CurrentCall>

export const ConversationSummary = z
  .object({
    id: z.uuid(),
    title: z.string().optional(),
    preview: z.string().optional().describe('The beginning of the first message.'),
    last_words: z.string().optional().describe('The beginning of what the newest run ended with.'),
    status: Status,
    queued: z
      .literal(true)
      .optional()
      .describe('The run waits because OPENHANDS_MAX_CONCURRENT_RUNS other runs are active.'),
    waiting: z.int().positive().optional().describe('Requests that wait for a user or a client: `GET /requests`.'),
    current_call: CurrentCall.optional().describe('The oldest call without a result, while the agent runs.'),
    attended: z.literal(true).optional().describe('A person has it open in a chat.'),
    labels: z.array(z.string()).optional(),
    user_id: z.string().optional(),
    model: z.string().optional(),
    cost_usd: z.number().optional().describe('Of the whole conversation, as of the end of its newest run.'),
    archived: z.literal(true).optional(),
    last_seq: z.int().nonnegative(),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({
    id: 'ConversationSummary',
    examples: [
      {
        id: '0199a1f0-5c3e-7d12-9b1a-2f6d8c40a7e1',
        title: 'totals',
        preview: 'Write total.sh, which adds up a CSV file.',
        status: 'running',
        current_call: { tool_use_id: 'call_1', name: 'Bash', target: './total.sh example.csv' },
        model: 'gpt-5',
        last_seq: 4,
        created_at: '2026-01-31T12:00:00.000Z',
        updated_at: '2026-01-31T12:00:07.250Z',
      },
    ],
  })
export type ConversationSummary = z.infer<typeof ConversationSummary>

/** A row that has changed, for the readers of the firehose with `summaries`. Never stored. */
export const ConversationSummaryFrame = z
  .object({
    type: z.literal('ConversationSummary'),
    conversation_id: z.uuid(),
    summary: ConversationSummary,
  })
  .meta({ id: 'ConversationSummaryFrame' })
export type ConversationSummaryFrame = z.infer<typeof ConversationSummaryFrame>

export const ConversationSummaries = z
  .object({ items: z.array(ConversationSummary), next_page_id: z.string().nullable() })
  .meta({ id: 'ConversationSummaries' })
export type ConversationSummaries = z.infer<typeof ConversationSummaries>
