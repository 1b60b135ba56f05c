/** Says which files the workdir of a fork has: in its answer, and in its `ForkedFrom`. */
import { z } from 'zod'

export const ForkedFiles = z
  .object({
    from: z
      .enum(['snapshot', 'now', 'shared'])
      .describe(
        '`snapshot`: the workdir has the files as they were at the last copied event. `now`: those that the original had when it was forked. `shared`: the directory of the original.',
      ),
    snapshot_id: z.uuid().optional().describe('The snapshot that they are from.'),
    reason: z.string().optional().describe('Why they are those of now, although the fork begins earlier.'),
    left_out: z
      .array(z.object({ path: z.string(), reason: z.string() }))
      .optional()
      .describe(
        'With `snapshot`: paths that are as they were when the conversation was forked, since no snapshot has them, or they could not be restored. The first 100. Answers have it only for keys with the scope `read`.',
      ),
    left_out_count: z.int().positive().optional().describe('How many there are, if there are more.'),
  })
  .meta({ id: 'ForkedFiles' })
export type ForkedFiles = z.infer<typeof ForkedFiles>
