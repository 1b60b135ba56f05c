/** The user's own git repository in a workdir on the wire: requests and responses. */
import { z } from 'zod'
import { FileDiffStatus, FileDiff } from './diff.ts'
import { PageLimit } from './values/page.ts'

const Page = {
  limit: PageLimit,
  page_id: z
    .string()
    .regex(/^\d{1,9}$/, { error: 'must be the next_page_id of a page' })
    .optional()
    .describe('`next_page_id` of the previous page.'),
}

const GitPath = z
  .string()
  .describe('Relative to the workdir. In a name that is not UTF-8, invalid bytes are shown as U+FFFD.')

export const GetGitStatus = z.strictObject(Page)
export type GetGitStatus = z.infer<typeof GetGitStatus>

const GitStatusEntry = z
  .object({
    path: GitPath,
    old_path: GitPath.optional().describe('The path before a rename or a copy.'),
    staged: FileDiffStatus.optional().describe('The change from HEAD to the index.'),
    unstaged: FileDiffStatus.optional().describe('The change from the index to the file.'),
    untracked: z.literal(true).optional().describe('The file is in no commit and not in the index.'),
    conflict: z.literal(true).optional().describe('A merge has left a conflict.'),
    submodule: z
      .literal(true)
      .optional()
      .describe('A repository in the repository. Changes inside of it are not shown.'),
  })
  .meta({ id: 'GitStatusEntry' })
export type GitStatusEntry = z.infer<typeof GitStatusEntry>

export const GitStatus = z
  .object({
    commit: z.string().nullable().describe('The commit of HEAD; null before the first commit.'),
    branch: z.string().nullable().describe('The branch; null if HEAD is detached.'),
    items: z.array(GitStatusEntry),
    next_page_id: z.string().nullable(),
  })
  .meta({ id: 'GitStatus' })
export type GitStatus = z.infer<typeof GitStatus>

export const GetGitDiff = z.strictObject({
  base: z
    .enum(['head', 'merge_base', 'run', 'start'])
    .default('head')
    .describe(
      'What the files are compared with: the commit of HEAD, or the last one that HEAD has in common with the main branch (`origin/HEAD`, or `main` or `master` of `origin`, or of the repository). `run` and `start` are the commit of HEAD when the last run or the conversation began, with `file_checkpointing`.',
    ),
  ...Page,
})
export type GetGitDiff = z.infer<typeof GetGitDiff>

export const GitDiff = z
  .object({
    base_commit: z.string().nullable().describe('Null before the first commit.'),
    items: z.array(FileDiff),
    next_page_id: z.string().nullable(),
  })
  .meta({ id: 'GitDiff' })
export type GitDiff = z.infer<typeof GitDiff>

export const GetGitFile = z.strictObject({
  rev: z
    .string()
    .min(1)
    .max(1000)
    .regex(/^[^\0]*$/, 'must not contain NUL')
    .meta({ pattern: String.raw`^[^\u0000]*$` })
    .describe('A commit: its id, a branch, a tag, or `HEAD~2`.'),
  path: z
    .string()
    .min(1)
    .max(4096)
    .regex(/^[^\0]*$/, 'must not contain NUL')
    .meta({ pattern: String.raw`^[^\u0000]*$` })
    .describe('Relative to the workdir.'),
})
export type GetGitFile = z.infer<typeof GetGitFile>
