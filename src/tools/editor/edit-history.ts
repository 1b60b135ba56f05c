/**
 * Stores the content of files before they were edited, so that an edit can be undone even after a restart: one file per
 * edit, the oldest removed above a limit. Not synced: after a power failure the last undo may be missing or torn, and a
 * torn one counts as missing. Its caller makes one edit at a time. Entries contain whole files, with the secrets in
 * them, so they are encrypted.
 */
import { createHash } from 'node:crypto'
import { readFile, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { makeDirectories } from '../../files/make-directories.ts'
import { z } from 'zod'
import { replaceFile } from '../../lib/durable-file.ts'

export type EditHistoryOptions = {
  /** The directory of this conversation only; created with the first edit. */
  readonly directory: string
  readonly sealer: ContentSealer
  readonly maxEntries?: number
  readonly maxBytes?: number
}

/** Encrypts private data. `unseal` returns undefined for data that was not sealed by it. */
export type ContentSealer = {
  readonly seal: (content: Buffer) => Buffer
  readonly unseal: (sealed: Buffer) => Buffer | undefined
}

/** A file's content; undefined if there was no file. */
export type Content = Buffer | undefined

export type PastEdit = {
  /** The content that undoing restores. */
  readonly before: Content
  /** True if this content is the result of the edit, so that undoing it loses nothing else. */
  readonly isResult: (content: Content) => boolean
  /** True if the edit was never made, or is already undone: a crash came between it and its record. */
  readonly isMoot: (content: Content) => boolean
  readonly forget: () => Promise<void>
}

export interface EditHistory {
  /** Records an edit before it is made. Forget the record if the edit fails. */
  note(path: string, before: Content, after: Content): Promise<PastEdit>
  /** Returns the newest edit of that file. */
  last(path: string): Promise<PastEdit | undefined>
}

/** Maximum number of edits, over all files of a conversation. */
const MAX_ENTRIES = 200

/** Maximum size on disk; several of the largest editable files. */
const MAX_BYTES = 64 * 1024 * 1024

/** `stateDirectory`: the server's own directory for the conversation. */
export const editsIn = (stateDirectory: string): string => join(stateDirectory, 'edits')

/** No edit of a conversation can be undone any more: what it would bring back may have been rewound. */
export const forgetEdits = (stateDirectory: string): Promise<void> =>
  rm(editsIn(stateDirectory), { recursive: true, force: true })

export function createEditHistory({
  directory,
  sealer,
  maxEntries = MAX_ENTRIES,
  maxBytes = MAX_BYTES,
}: EditHistoryOptions): EditHistory {
  const pastEdit = (name: string, before: Content, after: string): PastEdit => ({
    before,
    isResult: (content) => digest(content) === after,
    isMoot: (content) => digest(content) === digest(before),
    forget: () => rm(join(directory, name), { force: true }),
  })

  return {
    async note(path, before, after) {
      await makeDirectories(directory, 0o700)
      const entries = await listEntries(directory)
      const entry = { number: (entries.at(-1)?.number ?? 0) + 1, key: keyOf(path), size: before?.length ?? 0 }
      await removeOldest(directory, [...entries, entry], { maxEntries, maxBytes })
      const header: Header = { path, existed: before !== undefined, size: entry.size, after: digest(after) }
      const parts = [Buffer.from(`${JSON.stringify(header)}\n`), before ?? Buffer.alloc(0)]
      const draft = join(directory, UNFINISHED)
      await replaceFile(join(directory, nameOf(entry)), sealer.seal(Buffer.concat(parts)), { durable: false, draft })
      return pastEdit(nameOf(entry), before, header.after)
    },

    async last(path) {
      const own = (await listEntries(directory)).filter((entry) => entry.key === keyOf(path))
      for (const name of own.toReversed().map(nameOf)) {
        const pastEntry = await readEntry(join(directory, name), sealer)
        if (pastEntry?.header.path === path) return pastEdit(name, pastEntry.before, pastEntry.header.after)
      }
      return undefined
    },
  }
}

/** The name contains everything needed to find and to count it. */
type Entry = { readonly number: number; readonly key: string; readonly size: number }

const nameOf = ({ number, key, size }: Entry) => `${number}.${key}.${size}`

/** The name is always the same, so that the remains of a crash are overwritten. */
const UNFINISHED = 'entry.new'

const keyOf = (path: string) => createHash('sha256').update(path).digest('hex').slice(0, 16)

const NAME = /^(\d+)\.([0-9a-f]{16})\.(\d+)$/

/** Oldest first. */
async function listEntries(directory: string): Promise<Entry[]> {
  const names = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  return names
    .flatMap((name) => {
      const [, number, key, size] = NAME.exec(name) ?? []
      return key === undefined ? [] : [{ number: Number(number), key, size: Number(size) }]
    })
    .sort((a, b) => a.number - b.number)
}

/** Never removes the newest, which is about to be written. */
async function removeOldest(
  directory: string,
  entries: readonly Entry[],
  { maxEntries, maxBytes }: { maxEntries: number; maxBytes: number },
): Promise<void> {
  let bytes = entries.reduce((sum, entry) => sum + entry.size, 0)
  let count = entries.length
  for (const entry of entries.slice(0, -1)) {
    if (count <= maxEntries && bytes <= maxBytes) return
    await rm(join(directory, nameOf(entry)), { force: true })
    bytes -= entry.size
    count--
  }
}

const Header = z.object({ path: z.string(), existed: z.boolean(), size: z.int(), after: z.string() })
type Header = z.infer<typeof Header>

/** Returns undefined if it was torn by a power failure, or sealed with a lost key. */
async function readEntry(
  path: string,
  { unseal }: ContentSealer,
): Promise<{ header: Header; before: Content } | undefined> {
  try {
    const bytes = unseal(await readFile(path))
    if (!bytes) return undefined
    const end = bytes.indexOf('\n')
    const header = Header.parse(JSON.parse(bytes.toString('utf8', 0, end)))
    const before = bytes.subarray(end + 1)
    if (before.length !== header.size) return undefined
    return { header, before: header.existed ? before : undefined }
  } catch {
    return undefined
  }
}

const digest = (content: Content) => (content ? createHash('sha256').update(content).digest('hex') : 'no file')
