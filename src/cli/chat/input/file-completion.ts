/** Finds the files of a conversation that complete a word, without those of git and those that git ignores. */
import { opendir } from 'node:fs/promises'
import { fuzzyFilter } from '@earendil-works/pi-tui'
import type { ConversationHandle } from '../../../client/conversation/conversation-handle.ts'
import { NEVER, withinTime } from '../../../lib/bounded-wait.ts'
import { IgnoredFiles } from './ignored-files.ts'

const FOUND_FILES = 20
/** The entries that are read in one directory. */
const MAX_ENTRIES = 1000
/** The paths of all directories, the upper ones first. */
const MAX_PATHS = 20_000
const MAX_INDEX_MS = 2000
/** How long an index is used, in milliseconds. */
const KEPT_MS = 5000
/** Directories that are read at the same time. */
const AT_A_TIME = 8
const MAX_IGNORE_FILE_BYTES = 256 * 1024

type Files = ConversationHandle['files']
type Index = { readonly paths: readonly string[]; readonly ignored: IgnoredFiles }

export class FileCompletion {
  readonly #isHere: boolean
  #last: { readonly id: string; readonly until: number; readonly index: Promise<Index> } | undefined

  /** `isHere`: whether the directories of the agent are on this machine. */
  constructor(isHere: boolean) {
    this.#isHere = isHere
  }

  /** Paths of the workdir, the best first; directories end in `/`. Absolute ones are in the additional directories. */
  async find(conversation: ConversationHandle, part: string, signal: AbortSignal): Promise<readonly string[]> {
    const { id, files } = conversation
    if (part.startsWith('/')) {
      if (!this.#isHere) return []
      const { additional_directories: directories = [] } = await conversation.get({ signal })
      return await findAddedFiles(part, directories)
    }
    if (part !== '' && !part.endsWith('/')) {
      const { paths } = await this.#indexOf(id, files)
      return fuzzyFilter([...paths], part, (path) => path).slice(0, FOUND_FILES)
    }
    const [{ items }, { ignored }] = await Promise.all([
      files.list({ path: part, limit: MAX_ENTRIES }, { signal }),
      this.#indexOf(id, files),
    ])
    const shownItems = items.filter(({ path, type }) => !ignored.has(path, type === 'directory'))
    return shownItems.slice(0, FOUND_FILES).map(nameOf)
  }

  #indexOf(id: string, files: Files): Promise<Index> {
    const now = performance.now()
    if (this.#last?.id !== id || this.#last.until < now)
      this.#last = {
        id,
        until: now + KEPT_MS,
        index: withinTime(MAX_INDEX_MS, NEVER, (inTime) => indexOf(files, inTime)),
      }
    return this.#last.index
  }
}

/** Returns what was found until the signal. Never throws. */
async function indexOf(files: Files, signal: AbortSignal): Promise<Index> {
  const [paths, ignoredFiles]: [string[], IgnoredFiles] = [[], new IgnoredFiles()]
  let directories = ['']
  while (directories.length > 0 && paths.length < MAX_PATHS && !signal.aborted) {
    const [now, later] = [directories.slice(0, AT_A_TIME), directories.slice(AT_A_TIME)]
    const foundEntries = await Promise.all(
      now.map((path) => entriesOf(files, path, ignoredFiles, signal).catch(() => [])),
    )
    const shownEntries = foundEntries.flat().filter(({ path, type }) => !ignoredFiles.has(path, type === 'directory'))
    for (const entry of shownEntries) paths.push(nameOf(entry))
    directories = [...later, ...shownEntries.flatMap(({ path, type }) => (type === 'directory' ? [path] : []))]
  }
  return { paths: paths.slice(0, MAX_PATHS), ignored: ignoredFiles }
}

/** Reads its `.gitignore`, too. */
async function entriesOf(files: Files, path: string, ignoredFiles: IgnoredFiles, signal: AbortSignal) {
  const { items } = await files.list({ path, limit: MAX_ENTRIES }, { signal })
  const file = items.find(
    ({ name, type, size }) => name === '.gitignore' && type === 'file' && size <= MAX_IGNORE_FILE_BYTES,
  )
  if (file) ignoredFiles.add(path === '' ? '' : `${path}/`, await (await files.get(file.path, { signal })).text())
  return items
}

const nameOf = ({ path, type }: { path: string; type: string }): string => (type === 'directory' ? `${path}/` : path)

/**
 * Completes absolute paths in the additional directories of the agent, which must be on this machine. Directories end in `/`. Empty for a path elsewhere, and for one that cannot be read.
 */
async function findAddedFiles(part: string, directories: readonly string[]): Promise<readonly string[]> {
  const roots = directories.map((each) => `${each}/`)
  const parent = part.slice(0, part.lastIndexOf('/') + 1)
  const isInside = roots.some((root) => parent.startsWith(root)) && !part.includes('/../')
  if (!isInside) return roots.filter((root) => root.startsWith(part))
  const foundPaths: string[] = []
  let readCount = 0
  for await (const entry of await opendir(parent)) {
    if (++readCount > MAX_ENTRIES || foundPaths.length >= FOUND_FILES) break
    const path = parent + entry.name
    if (path.startsWith(part)) foundPaths.push(entry.isDirectory() ? `${path}/` : path)
  }
  return foundPaths.toSorted()
}
