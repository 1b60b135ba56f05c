/** Lists a directory for the editor: two levels, without hidden entries, limited in size. */
import { constants } from 'node:fs'
import type { Dirent } from 'node:fs'
import { opendir } from 'node:fs/promises'
import { isOutOfDescriptors } from '../lib/error-code.ts'
import type { Gate } from './jail/file-gate.ts'
import type { OpenedPath } from './jail/opened-path.ts'
import { openAt, within } from './jail/opened-path.ts'

export type Listing = {
  /** Paths relative to the directory, in order; directories have a trailing `/`. */
  readonly entries: readonly string[]
  /** Number of hidden entries in the directory itself. */
  readonly hidden: number
  /** True if there are more entries than could be listed. */
  readonly isCut: boolean
}

/** Maximum number of entries in a listing. */
export const MAX_LISTED = 1000

/** Characters of all paths as they are shown, with the directory: a name may have 255, and a model reads all of them. */
export const MAX_LISTED_CHARS = 64_000

/** `shown` is the directory as it is shown before each entry. */
export async function listTwoLevels(directory: OpenedPath, shownPath: string, gate: Gate): Promise<Listing> {
  const room = new Room()
  const top = await readVisible(directory, room, shownPath.length)
  const entries: string[] = []
  // List the first level first: one large directory must not displace the others.
  let isCut = top.isCut
  for (const entry of top.visible) {
    entries.push(labelOf(entry))
    if (!entry.isDirectory()) continue
    const inner = await readInner(directory, entry.name, room, shownPath, gate)
    entries.push(...inner.visible.map((child) => `${entry.name}/${labelOf(child)}`))
    isCut ||= inner.isCut
  }
  return { entries, hidden: top.hidden, isCut }
}

/** What is left of the limits of a listing. */
class Room {
  #entries = MAX_LISTED
  #chars = MAX_LISTED_CHARS

  /** False if the entry does not fit; nothing fits from then on. */
  take(chars: number): boolean {
    this.#chars -= chars
    if (this.#chars < 0) this.#entries = 0
    return this.#entries-- > 0
  }
}

type Names = { readonly visible: readonly Dirent[]; readonly hidden: number; readonly isCut: boolean }

/** An unreadable directory is listed by name only. */
async function readInner(
  directory: OpenedPath,
  name: string,
  room: Room,
  shownPath: string,
  gate: Gate,
): Promise<Names> {
  try {
    await using inner = await openAt(within(directory, name), constants.O_DIRECTORY | constants.O_NOFOLLOW)
    await gate.check(inner.path, 'read')
    return await readVisible(inner, room, shownPath.length + name.length + 1)
  } catch (error) {
    if (isOutOfDescriptors(error)) throw error
    return { visible: [], hidden: 0, isCut: false }
  }
}

/** `prefix`: characters that are shown before each name. */
async function readVisible(directory: OpenedPath, room: Room, prefix: number): Promise<Names> {
  const visible: Dirent[] = []
  let hiddenCount = 0
  let isCut = false
  for await (const entry of await opendir(within(directory, '.'))) {
    if (entry.name.startsWith('.')) hiddenCount++
    else if (room.take(prefix + entry.name.length + 2)) visible.push(entry)
    else isCut = true
    if (isCut) break
  }
  return { visible: visible.sort((a, b) => (a.name < b.name ? -1 : 1)), hidden: hiddenCount, isCut }
}

const labelOf = (entry: Dirent) => (entry.isDirectory() ? `${entry.name}/` : entry.name)
