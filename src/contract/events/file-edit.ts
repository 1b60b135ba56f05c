/** What a call of an editing tool has changed in one file. */
import { z } from 'zod'

export const FileEdit = z
  .object({
    operation: z.enum(['add', 'modify', 'delete', 'move']),
    path: z.string().describe('Relative to the workdir, or absolute outside of it.'),
    old_path: z.string().optional().describe('The path before a move.'),
    binary: z.literal(true).optional().describe('The content is no UTF-8 text: there is no patch.'),
    patch: z
      .string()
      .optional()
      .describe(
        'In the format of git, redacted. Absent for a binary file, outside of the workdir, and beyond 64 KiB for all files of the call.',
      ),
  })
  .meta({ id: 'FileEdit' })
export type FileEdit = z.infer<typeof FileEdit>
