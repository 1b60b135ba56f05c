/** What `Grep` is asked for, and what a search answers. */
import { z } from 'zod'
import type { SearchPlace } from './search-place.ts'

const DEFAULT_HEAD_LIMIT = 250
const MAX_HEAD_LIMIT = 2000
const MAX_PATTERN_CHARS = 10_000
const MAX_CONTEXT_LINES = 100

const Context = z.int().min(0).max(MAX_CONTEXT_LINES).optional()

export const GrepInput = z.object({
  pattern: z.string().min(1).max(MAX_PATTERN_CHARS).describe('A regular expression in the syntax of ripgrep.'),
  path: z.string().min(1).optional().describe('The directory or file to search. Default: the working directory.'),
  glob: z.string().min(1).optional().describe('Only files that match, such as `*.js` or `src/**/*.{ts,tsx}`.'),
  type: z
    .string()
    .regex(/^[a-zA-Z0-9+-]+$/)
    .optional()
    .describe('Only files of this type, such as `js`, `py`, `rust`, `go`.'),
  output_mode: z
    .enum(['content', 'files_with_matches', 'count'])
    .default('files_with_matches')
    .describe(
      '`content`: the lines; `files_with_matches`: the paths, those changed last first; `count`: lines per file.',
    ),
  '-A': Context.describe('Lines to show after each match, with `content`.'),
  '-B': Context.describe('Lines to show before each match, with `content`.'),
  '-C': Context.describe('Lines to show before and after each match, with `content`.'),
  '-n': z.boolean().default(true).describe('Line numbers, with `content`.'),
  '-i': z.boolean().default(false).describe('Ignore case.'),
  multiline: z.boolean().default(false).describe('Matches may reach over line ends, and `.` stands for them too.'),
  head_limit: z
    .int()
    .min(1)
    .max(MAX_HEAD_LIMIT)
    .default(DEFAULT_HEAD_LIMIT)
    .describe('How many lines, files or counts to show.'),
})
export type GrepInput = z.infer<typeof GrepInput>

export type GrepQuestion = {
  readonly input: GrepInput
  readonly place: SearchPlace
  readonly without: readonly string[]
  readonly redact: (text: string) => Promise<string>
}

/** What was found, in lines for the model, and what is to be said besides. */
export type GrepResult = {
  readonly lines: readonly string[]
  readonly notes: readonly string[]
  readonly isCut: boolean
}
