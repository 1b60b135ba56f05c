/** The `Glob` tool: finds files by a pattern for their paths. */
import { isAbsolute } from 'node:path'
import { z } from 'zod'
import { findFiles } from '../../files/search/find-files.ts'
import type { AgentFiles } from '../files/agent-files.ts'
import type { Tool } from '../tool.ts'
import type { SearchAccess } from './search-place.ts'
import { LEFT_OUT, searchAt } from './search-place.ts'

/** Files that are shown. */
const MAX_GLOB_FILES = 100

const MAX_PATTERN_CHARS = 1000

const GlobInput = z.object({
  pattern: z.string().min(1).max(MAX_PATTERN_CHARS).describe('Such as `**/*.ts`, `src/**/*.{js,jsx}` or `test_*.py`.'),
  path: z.string().min(1).optional().describe('The directory to search. Default: the working directory.'),
})
type GlobInput = z.infer<typeof GlobInput>

const DESCRIPTION = `Finds files by a pattern for their paths, those changed last first; at most ${MAX_GLOB_FILES} are shown.

- \`*\` and \`?\` stand for characters of a name, \`**\` for any directories, \`[a-z]\` for one character, \`{a,b}\` for alternatives. A pattern without a slash is for names at any depth.
- Directories such as .git and node_modules are left out; to search one, give it as \`path\`. Symbolic links are not followed.
- Use Grep to search by content.`

type GlobDeps = { readonly files: AgentFiles; readonly search: SearchAccess }

export function createGlob(deps: GlobDeps): Tool<GlobInput> {
  return {
    name: 'Glob',
    description: DESCRIPTION,
    input: GlobInput,
    output: z.string(),
    readOnly: true,
    access: (input) => ({ kind: 'read', paths: [splitPattern(input).start ?? '.'], isDeep: true }),
    run: (input, context) => {
      const { start, pattern } = splitPattern(input)
      return searchAt(deps, start, context, async ({ jail, directory, shown, signal }) => {
        const { files, isCut } = await findFiles(jail, directory, { pattern, without: LEFT_OUT, signal })
        const notes = [
          files.length > MAX_GLOB_FILES &&
            `[${files.length - MAX_GLOB_FILES} more files match; use a narrower pattern.]`,
          isCut && '[The search was ended early; there may be more files. Search a smaller directory.]',
        ].filter((note) => note !== false)
        const lines = files.slice(0, MAX_GLOB_FILES).map(({ path }) => shown(path))
        const output = [...(lines.length > 0 ? lines : ['No files found.']), ...notes].join('\n')
        return { output, ...(notes.length > 0 && { truncated: true }) }
      })
    },
  }
}

/** The directories that a pattern begins with need no search: `/work/src/*.ts` is `*.ts` in `/work/src`. */
function splitPattern({ pattern, path }: GlobInput): { start: string | undefined; pattern: string } {
  const names = pattern.replace(/^(?:\.\/)+/, '').split('/')
  const first = names.findIndex((name) => /[*?[{]/.test(name))
  const count = first < 0 ? names.length - 1 : first
  if (count === 0) return { start: path, pattern: names.join('/') }
  const prefix = names.slice(0, count).join('/') || '/'
  const rest = names.slice(count)
  // The slash makes it a pattern for the path from there on.
  const anchoredPattern = rest.length === 1 ? `/${rest[0]}` : rest.join('/')
  // The paths are not joined: that would take quadratic time for many `..`, and only the file system knows where they
  // lead.
  const start = isAbsolute(prefix) || path === undefined ? prefix : `${path}/${prefix}`
  return { start, pattern: anchoredPattern }
}
