/** A compaction that a client asks for: the request and its answer. */
import { z } from 'zod'
import { Condensation } from '../events/condensation.ts'

export const CompactRequest = z
  .strictObject({
    instructions: z.string().min(1).max(10_000).optional().describe('What the summary has to contain.'),
  })
  .meta({ id: 'CompactRequest', examples: [{ instructions: 'Keep the names of all files that were changed.' }] })
export type CompactRequest = z.infer<typeof CompactRequest>

export const Compacted = z.object({ condensation: Condensation }).meta({
  id: 'Compacted',
  examples: [
    {
      condensation: {
        id: '0199a1f2-7701-7a10-b0c4-5d2e3f4a5b6c',
        seq: 812,
        timestamp: '2026-01-31T12:00:09.500Z',
        conversation_id: '0199a1f0-5c3e-7d12-9b1a-2f6d8c40a7e1',
        version: 1,
        source: 'environment',
        type: 'Condensation',
        trigger: 'request',
        forgotten_through_seq: 790,
        kept_message_seqs: [2],
        summary: 'The agent wrote total.sh, which adds up the second column. Next: tests.',
        shortened_through_seq: 0,
        max_result_chars: 1000,
        tokens_before: 151000,
        tokens_after: 21000,
        model: 'gpt-5',
        usage: { input_tokens: 151400, output_tokens: 900, cached_tokens: 150000, reasoning_tokens: 0 },
      },
    },
  ],
})
export type Compacted = z.infer<typeof Compacted>
