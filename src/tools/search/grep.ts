/** The `Grep` tool: searches the content of files for a regular expression. */
import { z } from 'zod'
import type { AgentFiles } from '../files/agent-files.ts'
import type { Tool } from '../tool.ts'
import type { ToolOutcome } from '../../state/tool-call.ts'
import type { GrepResult } from './grep-question.ts'
import { GrepInput } from './grep-question.ts'
import { searchPlainText } from './grep-plain.ts'
import { searchByRegex } from './grep-regex.ts'
import type { SearchAccess } from './search-place.ts'
import { LEFT_OUT, searchAt } from './search-place.ts'

const DESCRIPTION = `Searches the content of files for a regular expression, with ripgrep.

- Literal braces and brackets must be escaped, as in \`interface\\{\\}\`.
- Hidden files are searched; binary files, files over 16 MiB and directories such as .git and node_modules are not. To search such a directory, give it as \`path\`. Ignore files have no effect, and symbolic links are not followed.
- Use it rather than grep in the shell: its output is bounded.`

type GrepDeps = { readonly files: AgentFiles; readonly search: SearchAccess }

export function createGrep(deps: GrepDeps): Tool<GrepInput> {
  return {
    name: 'Grep',
    description: DESCRIPTION,
    input: GrepInput,
    output: z.string(),
    readOnly: true,
    access: ({ path = '.' }) => ({ kind: 'read', paths: [path], isDeep: true }),
    run: (input, context) =>
      searchAt(deps, input.path, context, async (place) => {
        const ripgrep = deps.search.ripgrep()
        const question = { input, place, without: LEFT_OUT, redact: deps.files.redact }
        const grepResult = await (ripgrep === undefined ? searchPlainText(question) : searchByRegex(ripgrep, question))
        context.signal.throwIfAborted()
        return toOutcome(grepResult)
      }),
  }
}

/** Characters that are shown in all. */
const MAX_SHOWN_CHARS = 60_000

function toOutcome({ lines, notes, isCut }: GrepResult): ToolOutcome {
  let room = MAX_SHOWN_CHARS
  const fitting = lines.findIndex((line) => (room -= line.length + 1) < 0)
  const shownLines = fitting < 0 ? lines : lines.slice(0, fitting)
  const outputLines = [
    ...(lines.length > 0 ? shownLines : ['No matches found.']),
    ...(fitting < 0 ? [] : ['[The output was cut here; narrow the search.]']),
    ...notes,
  ]
  return { output: outputLines.join('\n'), ...((isCut || fitting >= 0) && { truncated: true }) }
}
