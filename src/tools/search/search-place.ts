/** Opens the directory of a search, in which the agent's files may be read, as a jail. */
import { basename, dirname, join } from 'node:path'
import { Problem } from '../../contract/problem.ts'
import type { OpenedPath } from '../../files/jail/opened-path.ts'
import type { Jail } from '../../files/jail/path-jail.ts'
import { openDirectoryIn } from '../../files/jail/path-jail.ts'
import { withinTime } from '../../lib/bounded-wait.ts'
import { EditorError, doesNotExist } from '../editor/editor-faults.ts'
import type { AgentFiles } from '../files/agent-files.ts'
import { absolutePath } from '../../policy/links/real-path.ts'
import { toOutcome } from '../files/agent-files.ts'
import type { ToolContext } from '../tool.ts'
import type { ToolOutcome } from '../../state/tool-call.ts'
import { failure } from '../../state/tool-call.ts'

export type SearchAccess = {
  /** Opens the directory at a path that has no links, with the rules of the conversation. */
  readonly openJail: (directory: string, signal: AbortSignal) => Promise<Jail>
  /** The program; undefined where there is none. */
  readonly ripgrep: () => string | undefined
}

export type SearchPlace = {
  readonly jail: Jail
  readonly directory: OpenedPath
  /** The only file to search in the directory. */
  readonly only: string | undefined
  /** A path from the directory on, as the model is shown it: from the workdir on where it is in there. */
  readonly shown: (path: string) => string
  /** Aborted when the call is, or when it takes too long. */
  readonly signal: AbortSignal
}

/** How long a search may take, milliseconds. */
const SEARCH_MS = 30_000

/** Left out unless a search begins inside of one: the files of version control and of package managers. */
export const LEFT_OUT = ['.git', '.hg', '.svn', 'node_modules', '.venv', '__pycache__']

/** Runs a search at a path, which may be absent: then in the workdir. */
export function searchAt(
  { files, search }: { readonly files: AgentFiles; readonly search: SearchAccess },
  path: string | undefined,
  { workdir, signal: call }: Pick<ToolContext, 'workdir' | 'signal'>,
  work: (place: SearchPlace) => Promise<ToolOutcome>,
): Promise<ToolOutcome> {
  return toOutcome(async () => {
    const { base, only } = await find(files, absolutePath(workdir, path ?? '.'))
    const fromWorkdir = base === workdir ? '' : base.startsWith(`${workdir}/`) ? base.slice(workdir.length + 1) : base
    try {
      return await withinTime(SEARCH_MS, call, async (signal) => {
        await using jail = await search.openJail(base, call)
        await using directory = await openDirectoryIn(jail, [])
        return await work({ jail, directory, only, signal, shown: (foundPath) => join(fromWorkdir, foundPath) })
      })
    } catch (error) {
      if (call.aborted) return failure('interrupted', 'The search was interrupted.')
      if (error instanceof Problem) throw new EditorError(error.message)
      throw error
    }
  })
}

async function find(files: AgentFiles, path: string): Promise<{ base: string; only: string | undefined }> {
  const foundEntry = await files.look(path, 0)
  switch (foundEntry.kind) {
    case 'directory':
      return { base: foundEntry.path, only: undefined }
    case 'file':
    case 'large':
      return { base: dirname(foundEntry.path), only: basename(foundEntry.path) }
    case 'missing':
      throw doesNotExist(path)
    case 'special':
      throw new EditorError(`${path} is ${foundEntry.what}; give the path of a directory or a file.`)
  }
}
