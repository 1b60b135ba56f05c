/**
 * The files of one conversation's workdir as clients see them: texts redacted, slow operations stopped at a time limit;
 * downloads unchanged.
 */
import type { Readable } from 'node:stream'
import type { FileCount, FileInfo, FileMatches, FilePage, ListFiles, SearchFiles } from '../../contract/files.ts'
import { archiveDirectory } from '../../files/trees/archive-directory.ts'
import { etagOf } from '../../files/jail/file-version.ts'
import type { JailPath } from '../../files/jail/jail-path.ts'
import { countFiles, describeFile, listFiles } from '../../files/trees/list-files.ts'
import type { Jail } from '../../files/jail/path-jail.ts'
import type { OpenedFile } from '../../files/jail/read-file.ts'
import { openFile } from '../../files/jail/read-file.ts'
import { searchFiles } from '../../files/search/search-files.ts'
import type { InJail } from './file-changes.ts'

/** Each method throws a `Problem` if the path is outside the workdir, does not exist, or is not allowed. */
export interface FileViews {
  readonly list: (path: JailPath, query: ListFiles, signal: AbortSignal) => Promise<FilePage>
  readonly info: (path: JailPath, signal: AbortSignal) => Promise<Omit<FileInfo, 'content_type'>>
  readonly count: (path: JailPath, signal: AbortSignal) => Promise<FileCount>
  readonly search: (path: JailPath, query: SearchFiles, signal: AbortSignal) => Promise<FileMatches>
  /** The caller closes the file. */
  readonly open: (path: JailPath, signal: AbortSignal) => Promise<OpenedFile>
  /** Returns a directory as `.tar.gz`. */
  readonly archive: (path: JailPath, signal: AbortSignal) => Promise<Readable>
}

export type FileViewsDeps = {
  readonly openJail: (signal: AbortSignal) => Promise<Jail>
  readonly inJail: InJail
  /** Returns the path of ripgrep; undefined if it is not installed. */
  readonly ripgrep: () => string | undefined
  readonly redact: (text: string) => string
}

/** Maximum duration of a search or a count, in milliseconds. */
const MAX_LOOK_MS = 10_000

export function createFileViews({ openJail, inJail, ripgrep, redact }: FileViewsDeps): FileViews {
  const redactEntry = <T extends { path: string; name: string }>(entry: T): T => {
    return { ...entry, path: redact(entry.path), name: redact(entry.name) }
  }

  return {
    list: (path, query, signal) =>
      inJail(signal, async (jail) => {
        const { items, next_page_id } = await listFiles(jail, path, query)
        return { items: items.map(redactEntry), next_page_id }
      }),

    info: (path, signal) =>
      inJail(signal, async (jail) => {
        const { entry, stats } = await describeFile(jail, path)
        const mode = (Number(stats.mode) & 0o7777).toString(8)
        return { ...redactEntry(entry), mode, ...(entry.type === 'file' && { etag: etagOf(stats) }) }
      }),

    count: (path, signal) => inJail(signal, (jail) => countFiles(jail, path, performance.now() + MAX_LOOK_MS)),

    search: (path, query, signal) =>
      inJail(signal, async (jail) => {
        const enough = AbortSignal.any([signal, AbortSignal.timeout(MAX_LOOK_MS)])
        const foundItems = await searchFiles(jail, path, query, { ripgrep: ripgrep(), redact, signal: enough })
        const items = foundItems.items.map((match) => ({ ...match, path: redact(match.path) }))
        return { ...foundItems, items, ...(foundItems.skipped && { skipped: foundItems.skipped.map(redact) }) }
      }),

    open: (path, signal) => inJail(signal, (jail) => openFile(jail, path)),

    archive: async (path, signal) => await archiveDirectory(await openJail(signal), path),
  }
}
