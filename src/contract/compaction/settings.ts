/** How a conversation is compacted: `compaction` in requests and responses. */
import { z } from 'zod'

/** The part of the context window that is used; the rest is left for the answer, and for what an estimate may be wrong by. */
export const DEFAULT_THRESHOLD = 0.8

export const CompactionSettings = z
  .strictObject({
    enabled: z.boolean().optional().describe('Compact automatically. Default: true.'),
    threshold: z
      .number()
      .min(0.1)
      .max(1)
      .optional()
      .describe(`The part of the context window at which the server compacts. Default: ${DEFAULT_THRESHOLD}.`),
    model: z
      .string()
      .min(1)
      .max(500)
      .optional()
      .describe('The model that writes the summaries, at the endpoint of `llm_config`. Default: the same model.'),
  })
  .meta({ id: 'CompactionSettings', examples: [{ threshold: 0.7, model: 'gpt-5-mini' }] })
export type CompactionSettings = z.infer<typeof CompactionSettings>
