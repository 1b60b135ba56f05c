/** What has changed in the files of a conversation, on the wire. */
import { z } from 'zod'
import { Flag } from './values/page.ts'

const Seq = z.coerce.number().int().nonnegative()
/** A page has fewer items than other lists: each has its patch. */
const DiffLimit = z.coerce.number().int().min(1).max(500).default(100)

export const GetDiff = z.strictObject({
  from: z
    .string()
    .regex(/^(?:run|start|\d{1,15})$/, { error: 'must be run, start or a seq' })
    .default('run')
    .describe('`run`: before the last run. `start`: the first snapshot. Or as of an event, by seq.'),
  to: z
    .string()
    .regex(/^(?:now|\d{1,15})$/, { error: 'must be now or a seq' })
    .default('now')
    .describe('`now`, or as of an event, by seq.'),
  path: z
    .string()
    .max(4096)
    .regex(/^[^\0]*$/, 'must not contain NUL')
    .meta({ pattern: String.raw`^[^\u0000]*$` })
    .optional()
    .describe('A file or a directory, relative to the workdir, or absolute in an additional directory.'),
  patch: Flag.default(true).describe('Whether files have their patch.'),
  limit: DiffLimit,
  page_id: z
    .string()
    .regex(/^[0-9a-f]{40}\.\.[0-9a-f]{40}:\d{1,9}$/, { error: 'must be the next_page_id of a page' })
    .optional()
    .describe('`next_page_id` of the previous page; it keeps what `now` was.'),
})
export type GetDiff = z.infer<typeof GetDiff>

export const FileDiffStatus = z.enum(['added', 'modified', 'deleted', 'renamed', 'copied', 'type_changed'])
export type FileDiffStatus = z.infer<typeof FileDiffStatus>

export const FileDiff = z
  .object({
    path: z
      .string()
      .describe(
        'Relative to the workdir, or absolute in an additional directory. In a name that is not UTF-8, invalid bytes are shown as U+FFFD.',
      ),
    status: FileDiffStatus,
    old_path: z.string().optional().describe('The path before a rename or a copy.'),
    old_mode: z.string().describe('As in git: `100644`, `100755`, `120000` for a link, `000000` for none.'),
    new_mode: z.string(),
    binary: z.literal(true).optional(),
    added: z.int().nonnegative().describe('Lines; 0 for a binary file.'),
    removed: z.int().nonnegative().describe('Lines; 0 for a binary file.'),
    patch: z.string().optional().describe('In the format of git, redacted. Absent where git cannot make one.'),
    patch_truncated: z.literal(true).optional().describe('The patch is too long, and this is its beginning.'),
  })
  .meta({ id: 'FileDiff' })
export type FileDiff = z.infer<typeof FileDiff>

export const DiffPage = z
  .object({
    files: z.int().nonnegative().describe('Of all pages.'),
    added: z.int().nonnegative().describe('Lines, of all pages.'),
    removed: z.int().nonnegative().describe('Lines, of all pages.'),
    items: z.array(FileDiff),
    next_page_id: z.string().nullable(),
  })
  .meta({
    id: 'DiffPage',
    examples: [
      {
        files: 1,
        added: 1,
        removed: 0,
        items: [{ path: 'total.sh', status: 'added', old_mode: '000000', new_mode: '100755', added: 1, removed: 0 }],
        next_page_id: null,
      },
    ],
  })
export type DiffPage = z.infer<typeof DiffPage>

export const AtSeq = Seq.optional().describe(
  'The file as it was after the event with this seq, by `file_checkpointing`; without ranges and preconditions.',
)
