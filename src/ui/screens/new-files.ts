/** Files that git does not know: what the agent has made is in no commit. Their lines are read when somebody wants to see them. */
import { useMemo, useState } from 'preact/hooks'
import { AgentServerError } from '../../client/client.ts'
import { beginningOf } from '../parts/file-content.tsx'
import { useLoaded } from '../parts/loaded.tsx'
import type { OpenConversation } from '../state/conversation.ts'
import { rowsOfNewFile } from '../state/diff-lines.ts'
import { client } from '../state/session.ts'

/** `commentedPaths`: the paths of files with comments, which are always shown. Reads again when `lastChange` changes. */
export function useNewFiles(
  open: OpenConversation,
  commentedPaths: ReadonlySet<string>,
  lastChange: number | undefined,
) {
  const [openedPaths, setOpenedPaths] = useState<ReadonlySet<string>>(new Set())
  const paths = useLoaded((signal) => readPaths(open.id, signal), [open.id], lastChange)
  const shownPaths = (paths.value ?? []).filter((path) => openedPaths.has(path) || commentedPaths.has(path))
  const names = shownPaths.join('\0')
  const contents = useLoaded(
    async (signal) => ({ names, byPath: await readAll(open, shownPaths, signal) }),
    [open.id, names],
    lastChange,
  )
  const rows = useMemo(() => {
    const shownSet = new Set(shownPaths)
    return paths.value?.flatMap((path) =>
      rowsOfNewFile(path, shownSet.has(path) ? contents.value?.byPath.get(path) : undefined),
    )
  }, [paths.value, names, contents.value])
  return {
    rows,
    failed: [paths, contents].map(({ fault, again }) => ({ fault, again })).find(({ fault }) => fault !== undefined),
    isWhole: paths.value !== undefined && contents.value?.names === names,
    toggle: (path: string) =>
      setOpenedPaths((before) => (before.has(path) ? before.difference(new Set([path])) : new Set([...before, path]))),
  }
}

export const isFolder = (path: string): boolean => path.endsWith('/')

async function readPaths(id: string, signal: AbortSignal): Promise<readonly string[]> {
  try {
    const { items } = await client().conversation(id).git.status({ limit: 1000 }, { signal })
    return items.flatMap(({ path, untracked }) => (untracked ? [path] : []))
  } catch (error) {
    if (!isUnknown(error)) throw error
    return []
  }
}

/** Leaves out those that are gone. */
async function readAll(open: OpenConversation, paths: readonly string[], signal: AbortSignal) {
  const read = paths.map(async (path): Promise<[string, Content][]> => {
    try {
      return [[path, await beginningOf(open, { path, type: 'file' }, signal)]]
    } catch (error) {
      if (!isUnknown(error)) throw error
      return []
    }
  })
  return new Map((await Promise.all(read)).flat())
}

type Content = Awaited<ReturnType<typeof beginningOf>>

/** There is no repository, there are no snapshots, or there is no such file. */
export const isUnknown = (error: unknown): boolean =>
  error instanceof AgentServerError && (error.status === 404 || error.status === 409)
