/** Files of a workdir on the wire: requests and responses. */
import { z } from 'zod'
import { AtSeq } from './diff.ts'
import { Ticket } from './key.ts'
import { Flag, PageLimit } from './values/page.ts'

/** The limit of Linux. */
const MAX_PATH_BYTES = 4096

const Directory = z
  .string()
  .max(8192)
  // Longer ones are refused as unsafe.
  .meta({ maxLength: MAX_PATH_BYTES })
  .default('')
  .describe('A directory, relative to the workdir. Default: the workdir itself.')

const FilePath = z.string().describe('Relative to the workdir.')

const FileKind = z
  .enum(['file', 'directory', 'symlink', 'other'])
  .describe('`symlink`: a symbolic link, never followed. `other`: a pipe, a socket or a device, never opened.')
type FileKind = z.infer<typeof FileKind>

export const FileEntry = z
  .object({
    path: FilePath.describe(
      'Relative to the workdir. Requests use this path with each name percent-encoded once: `a\\b` as `a%5Cb`, `a%2Fb` as `a%252Fb`. In a name that is not UTF-8, invalid bytes are shown as U+FFFD; such a file cannot be requested by its name.',
    ),
    name: z.string(),
    type: FileKind,
    size: z.int().nonnegative().describe('Size in bytes; 0 unless it is a file.'),
    mtime: z.iso.datetime().describe('Modification time.'),
  })
  .meta({ id: 'FileEntry' })
export type FileEntry = z.infer<typeof FileEntry>

export const FilePage = z
  .object({ items: z.array(FileEntry), next_page_id: z.string().nullable() })
  .meta({ id: 'FilePage' })
export type FilePage = z.infer<typeof FilePage>

export const FileInfo = FileEntry.extend({
  mode: z.string().describe('Permissions, octal, such as `644`.'),
  etag: z.string().optional().describe('Entity tag of a file, for `If-Match` and `If-None-Match`.'),
  content_type: z.string().optional().describe('Content type of a download.'),
}).meta({ id: 'FileInfo' })
export type FileInfo = z.infer<typeof FileInfo>

/** `tar.gz` is the only format of a directory as one file. */
const ArchiveFormat = z.literal('tar.gz').optional().describe('Return the directory with its content as one archive.')

export const ListFiles = z.strictObject({
  path: Directory,
  recursive: Flag.default(false).describe('Include subdirectories. A directory is listed before its content.'),
  limit: PageLimit,
  page_id: z.string().optional().describe('`next_page_id` of the previous page.'),
  format: ArchiveFormat,
})
export type ListFiles = z.infer<typeof ListFiles>

export const GetFile = z.strictObject({ format: ArchiveFormat })

export const GetFileAt = GetFile.extend({ at: AtSeq, ticket: Ticket })

export const DeleteFile = z.strictObject({
  recursive: Flag.default(false).describe('Delete a directory that is not empty, with its content.'),
})

export const UploadFiles = z.strictObject({
  path: z
    .string()
    .max(8192)
    .meta({ maxLength: MAX_PATH_BYTES })
    .default('')
    .describe(
      'For one file: its path, or its directory (an existing directory, or a path that ends in `/`). For several files: their directory. Missing directories are created.',
    ),
})

export const SearchFiles = z.strictObject({
  q: z
    .string()
    .min(1)
    .max(1000)
    .optional()
    .describe(
      'Part of a name, case-insensitive. With `*`, `?` or `[` it is a pattern for the name, or, with a `/`, for the path. `**` matches any number of directories.',
    ),
  content: z
    .string()
    .min(1)
    .max(1000)
    .regex(/^[^\n\r\0]*$/, 'must be one line of text')
    // The same as a pattern that other languages support.
    .meta({ pattern: String.raw`^[^\n\r\u0000]*$` })
    .optional()
    .describe(
      'Literal text in a line of the file. Required without `q`. Files with NUL bytes at their beginning are skipped.',
    ),
  ignore_case: Flag.default(false).describe('Ignore the case of ASCII letters in `content`.'),
  path: Directory,
  limit: PageLimit,
})
export type SearchFiles = z.infer<typeof SearchFiles>

export const FileMatch = z
  .object({
    path: FilePath,
    type: FileKind,
    line: z.int().positive().optional().describe('Line number, from 1. Only with `content`.'),
    text: z.string().optional().describe('The line, cut if it is long. Absent if it is longer than 256 KiB.'),
  })
  .meta({ id: 'FileMatch' })
export type FileMatch = z.infer<typeof FileMatch>

export const FileMatches = z
  .object({
    items: z.array(FileMatch),
    truncated: z
      .boolean()
      .describe('Whether there may be more results: `limit` was reached, or the search was stopped early.'),
    skipped: z
      .array(FilePath)
      .optional()
      .describe('Large files that were not searched completely. At most 20 are listed.'),
  })
  .meta({ id: 'FileMatches' })
export type FileMatches = z.infer<typeof FileMatches>

export const CountFiles = z.strictObject({ path: Directory })

export const FileCount = z
  .object({
    count: z.int().nonnegative().describe('Number of files in all directories.'),
    directories: z.int().nonnegative(),
    symlinks: z.int().nonnegative(),
    others: z.int().nonnegative(),
    truncated: z.boolean().describe('Whether counting was stopped early, so that there are more.'),
  })
  .meta({ id: 'FileCount' })
export type FileCount = z.infer<typeof FileCount>

export const WrittenFile = z
  .object({
    path: FilePath,
    size: z.int().nonnegative(),
    event_id: z.uuid().describe('The `FileUpdate` event of the change.'),
    seq: z.int().positive(),
  })
  .meta({ id: 'WrittenFile' })
export type WrittenFile = z.infer<typeof WrittenFile>

export const UploadedFiles = z.object({ items: z.array(WrittenFile) }).meta({ id: 'UploadedFiles' })

export const MadeDirectory = z
  .object({
    path: FilePath,
    event_id: z.uuid().optional().describe('Absent if the directory already existed.'),
    seq: z.int().positive().optional(),
  })
  .meta({ id: 'MadeDirectory' })
export type MadeDirectory = z.infer<typeof MadeDirectory>

/** What happened to a file, by the names of Claude Code's hooks. */
export type FileChangeKind = 'add' | 'change' | 'unlink'
