/** Files of a workdir on the wire: how they are asked for, and what is told about them. */
import { z } from 'zod'
import { PageLimit } from './conversation.ts'

const Flag = z.stringbool({ truthy: ['true', '1'], falsy: ['false', '0'] })

const Directory = z
  .string()
  .max(8192)
  .default('')
  .describe('A directory, relative to the workdir; absent: the workdir itself.')

const FilePath = z.string().describe('Relative to the workdir.')

export const FileKind = z
  .enum(['file', 'directory', 'symlink', 'other'])
  .describe('`symlink`: never followed, wherever it leads; `other`: a pipe, a socket, a device, never opened.')
export type FileKind = z.infer<typeof FileKind>

export const FileEntry = z
  .object({
    path: FilePath.describe(
      'Relative to the workdir. The file can be asked for by this path, each name of it percent-encoded once: `a\\b` as `a%5Cb`, `a%2Fb` as `a%252Fb`. Of a name that is not UTF-8, the wrong bytes are shown as U+FFFD; the API cannot be asked for such a file by its name.',
    ),
    name: z.string(),
    type: FileKind,
    size: z.int().nonnegative().describe('Bytes; 0 for all but files.'),
    mtime: z.iso.datetime().describe('When it was last written to.'),
  })
  .meta({ id: 'FileEntry' })
export type FileEntry = z.infer<typeof FileEntry>

export const FilePage = z
  .object({ items: z.array(FileEntry), next_page_id: z.string().nullable() })
  .meta({ id: 'FilePage' })
export type FilePage = z.infer<typeof FilePage>

export const FileInfo = FileEntry.extend({
  mode: z.string().describe('Rights, octal, such as `644`.'),
  etag: z.string().optional().describe('Of a file: what `If-Match` and `If-None-Match` compare.'),
  content_type: z.string().optional().describe('What a download says it is.'),
}).meta({ id: 'FileInfo' })
export type FileInfo = z.infer<typeof FileInfo>

/** `tar.gz` is the only form there is of a directory as one file. */
const ArchiveFormat = z.literal('tar.gz').optional().describe('The directory with all it holds, as one file.')

export const ListFiles = z.strictObject({
  path: Directory,
  recursive: Flag.default(false).describe('Also what its directories hold. Each comes before what is in it.'),
  limit: PageLimit,
  page_id: z.string().optional().describe('`next_page_id` of the page before.'),
  format: ArchiveFormat,
})
export type ListFiles = z.infer<typeof ListFiles>

export const GetFile = z.strictObject({ format: ArchiveFormat })

export const DeleteFile = z.strictObject({
  recursive: Flag.default(false).describe('Also a directory that is not empty, with all it holds.'),
})

export const UploadFiles = z.strictObject({
  path: z
    .string()
    .max(8192)
    .default('')
    .describe(
      'For one file its own path, or the directory for it when it ends in `/` or is one; for several the directory. What is missing of the way is made.',
    ),
})

export const SearchFiles = z.strictObject({
  q: z
    .string()
    .min(1)
    .max(1000)
    .optional()
    .describe(
      'Part of a name, in any case; or a pattern, when it has `*`, `?` or `[`: for the name, or, when it has a `/`, for the path. `**` is any number of directories.',
    ),
  content: z
    .string()
    .min(1)
    .max(1000)
    .regex(/^[^\n\r\0]*$/, 'is text of one line')
    .optional()
    .describe(
      'Text that a line of the file holds, as it is; needed where there is no `q`. Files with NUL bytes at their beginning are left out.',
    ),
  ignore_case: Flag.default(false).describe('Of ASCII letters in `content`.'),
  path: Directory,
  limit: PageLimit,
})
export type SearchFiles = z.infer<typeof SearchFiles>

export const FileMatch = z
  .object({
    path: FilePath,
    type: FileKind,
    line: z.int().positive().optional().describe('With `content`: from 1.'),
    text: z.string().optional().describe('The line, cut when it is long; absent when it is longer than 256 KiB.'),
  })
  .meta({ id: 'FileMatch' })
export type FileMatch = z.infer<typeof FileMatch>

export const FileMatches = z
  .object({
    items: z.array(FileMatch),
    truncated: z.boolean().describe('Whether there may be more: `limit` was reached, or the search took too long.'),
    skipped: z
      .array(FilePath)
      .optional()
      .describe('Large files that there was no time to search to their end; at most 20 are named.'),
  })
  .meta({ id: 'FileMatches' })
export type FileMatches = z.infer<typeof FileMatches>

export const CountFiles = z.strictObject({ path: Directory })

export const FileCount = z
  .object({
    count: z.int().nonnegative().describe('Files, in all directories.'),
    directories: z.int().nonnegative(),
    symlinks: z.int().nonnegative(),
    others: z.int().nonnegative(),
    truncated: z.boolean().describe('Whether counting took too long, and there are more.'),
  })
  .meta({ id: 'FileCount' })
export type FileCount = z.infer<typeof FileCount>

export const WrittenFile = z
  .object({
    path: FilePath,
    size: z.int().nonnegative(),
    event_id: z.uuid().describe('The `FileUpdate` that tells of it.'),
    seq: z.int().positive(),
  })
  .meta({ id: 'WrittenFile' })
export type WrittenFile = z.infer<typeof WrittenFile>

export const UploadedFiles = z.object({ items: z.array(WrittenFile) }).meta({ id: 'UploadedFiles' })

export const MadeDirectory = z
  .object({
    path: FilePath,
    event_id: z.uuid().optional().describe('Absent when the directory was there already.'),
    seq: z.int().positive().optional(),
  })
  .meta({ id: 'MadeDirectory' })
export type MadeDirectory = z.infer<typeof MadeDirectory>
