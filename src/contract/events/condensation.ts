/** The event of a compaction: what the model no longer reads, and what it reads instead. */
import { z } from 'zod'
import { Usage } from '../values/message.ts'
import { byEnvironment, Envelope, InRun, InSubagent } from './envelope.ts'

export const CompactionTrigger = z
  .enum(['threshold', 'context_window', 'request'])
  .describe('The context was nearly full, the model refused it as too long, or a client asked for it.')
export type CompactionTrigger = z.infer<typeof CompactionTrigger>

export const Condensation = Envelope.extend({
  ...byEnvironment,
  ...InRun,
  ...InSubagent,
  type: z.literal('Condensation'),
  trigger: CompactionTrigger,
  forgotten_through_seq: z
    .int()
    .nonnegative()
    .describe(
      'The model no longer reads messages and answers up to this event, nor the results of their calls. 0: it still reads all of them.',
    ),
  kept_message_seqs: z.array(z.int().positive()).describe('Earlier messages that it still reads, by seq.'),
  max_message_chars: z.int().positive().optional().describe('Kept messages with more characters are shortened.'),
  summary: z.string().optional().describe('What the model reads instead.'),
  failure: z.string().optional().describe('Why there is no summary.'),
  tasks: z.string().optional().describe('The task list of the agent at that time.'),
  instructions: z.string().optional().describe('What the client asked of the summary.'),
  shortened_through_seq: z
    .int()
    .nonnegative()
    .describe('Of the answers up to this event, the model reads long tool results only in part.'),
  max_result_chars: z.int().positive().describe('Characters of such a result that it still reads.'),
  tokens_before: z.int().nonnegative().describe('Estimated tokens of a model request before the compaction.'),
  tokens_after: z.int().nonnegative().describe('The same after it.'),
  model: z.string().optional().describe('The model that wrote the summary.'),
  usage: Usage.optional().describe('Tokens that the summary took.'),
  cost_usd: z.number().nonnegative().optional(),
})
  .meta({ id: 'Condensation' })
  .describe('From here on, the model reads less of the conversation. The log still has all events.')
