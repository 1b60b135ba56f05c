/** The `Grep` tool: searches the content of files for a regular expression. */
import { z } from 'zod'
import type { AgentFiles } from '../files/agent-files.ts'
import type { Tool, ToolOutcome } from '../tool.ts'
import { searchPlainText } from './grep-plain.ts'
import { searchByRegex } from './grep-regex.ts'
import type { SearchDeps } from './search-place.ts'
import { LEFT_OUT, searchAt } from './search-place.ts'

const DEFAULT_HEAD_LIMIT = 250
const MAX_HEAD_LIMIT = 2000
const MAX_PATTERN_CHARS = 10_000
const MAX_CONTEXT_LINES = 100

const Context = z.int().min(0).max(MAX_CONTEXT_LINES).optional()

const GrepInput = z.object({
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

const DESCRIPTION = `Searches the content of files for a regular expression, with ripgrep.

- Literal braces and brackets must be escaped, as in \`interface\\{\\}\`.
- Hidden files are searched; binary files, files over 16 MiB and directories such as .git and node_modules are not. To search such a directory, give it as \`path\`. Ignore files have no effect, and symbolic links are not followed.
- Use it rather than grep in the shell: its output is bounded.`

type GrepDeps = { readonly files: AgentFiles; readonly search: SearchDeps }

export function createGrep(deps: GrepDeps): Tool<GrepInput> {
  return {
    name: 'Grep',
    description: DESCRIPTION,
    input: GrepInput,
    output: z.string(),
    readOnly: true,
    run: (input, context) =>
      searchAt(deps, input.path, context, async (place) => {
        const ripgrep = deps.search.ripgrep()
        const asked = { input, place, without: LEFT_OUT, redact: deps.files.redact }
        const found = await (ripgrep === undefined ? searchPlainText(asked) : searchByRegex(ripgrep, asked))
        context.signal.throwIfAborted()
        return toOutcome(found)
      }),
  }
}

/** What was found, in lines for the model, and what is to be said besides. */
export type GrepResult = {
  readonly lines: readonly string[]
  readonly notes: readonly string[]
  readonly isCut: boolean
}

/** Characters that are shown in all. */
const MAX_SHOWN_CHARS = 60_000

function toOutcome({ lines, notes, isCut }: GrepResult): ToolOutcome {
  let room = MAX_SHOWN_CHARS
  const fitting = lines.findIndex((line) => (room -= line.length + 1) < 0)
  const shown = fitting < 0 ? lines : lines.slice(0, fitting)
  const said = [
    ...(lines.length > 0 ? shown : ['No matches found.']),
    ...(fitting < 0 ? [] : ['[The output was cut here; narrow the search.]']),
    ...notes,
  ]
  return { output: said.join('\n'), ...((isCut || fitting >= 0) && { truncated: true }) }
}
