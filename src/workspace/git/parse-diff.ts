/** Reads the output of git for differences, with `--raw -z` and then `--numstat` or `--patch`. */
import { isUtf8 } from 'node:buffer'
import type { FileDiffStatus, FileDiff } from '../../contract/diff.ts'
import type { Slices } from '../../lib/time-slices.ts'
import { createSlices } from '../../lib/time-slices.ts'
import { CHANGES } from './parse-status.ts'

export type RawChange = {
  /** The path as it is on disk: each byte is one character. */
  readonly path: string
  readonly oldPath: string | undefined
  readonly status: FileDiffStatus
  readonly oldMode: string
  readonly newMode: string
  /** How many patches `git diff` writes for it: a change of the type is a removal and an addition. */
  readonly patches: number
}

/** Undefined for a binary file. */
type Counts = { readonly added: number | undefined; readonly removed: number | undefined }

/** A conflict without a file has no counts. */
const NO_LINES: Counts = { added: 0, removed: 0 }

export type FileDifference = RawChange & Counts

/** Fields that are read before others get a turn. */
const BATCH = 256

/** Reads `--raw --numstat -z`. */
export async function parseDifferences(
  output: string,
  slices: Slices = createSlices(),
): Promise<readonly FileDifference[]> {
  const { changes, rest } = await parseRaw(output, slices)
  const counts = await parseNumstat(rest, slices)
  const differences: FileDifference[] = []
  for (const change of changes) {
    if (differences.length % BATCH === 0) await slices.rest()
    differences.push({ ...change, ...(counts.get(change.path) ?? NO_LINES) })
  }
  return differences
}

/** `shown`: a path as clients have it. `patch`: redacted. */
export function toFileDiff(
  { path, oldPath, status, oldMode, newMode, added, removed }: FileDifference,
  showPath: (path: string) => string,
  patch?: { readonly text: string; readonly isCut: boolean },
): FileDiff {
  return {
    path: showPath(path),
    status,
    ...(oldPath !== undefined && { old_path: showPath(oldPath) }),
    old_mode: oldMode,
    new_mode: newMode,
    ...(added === undefined && { binary: true as const }),
    added: added ?? 0,
    removed: removed ?? 0,
    ...(patch && { patch: patch.text }),
    ...(patch?.isCut && { patch_truncated: true as const }),
  }
}

/** Returns the changes in the order of git, one for each path. `rest` is what follows. */
export async function parseRaw(
  output: string,
  slices: Slices = createSlices(),
): Promise<{ readonly changes: readonly RawChange[]; readonly rest: string }> {
  const foundChanges = new Map<string, RawChange>()
  const fields = new Fields(output)
  for (let count = 1; fields.beginsWith(':'); count++) {
    if (count % BATCH === 0) await slices.rest()
    const [oldMode = '', newMode = '', , , letter = ''] = fields.next().slice(1).split(' ')
    const first = fields.next()
    const hasTwo = letter.startsWith('R') || letter.startsWith('C')
    const path = hasTwo ? fields.next() : first
    const status = CHANGES[letter[0] ?? '']
    const oldPath = hasTwo ? first : undefined
    const base = { path, oldPath, oldMode, newMode }
    if (status) foundChanges.set(path, { ...base, status, patches: status === 'type_changed' ? 2 : 1 })
    // A conflict whose file was removed.
    else if (!foundChanges.has(path)) foundChanges.set(path, { ...base, status: 'modified', patches: 0 })
  }
  // An empty field ends the list.
  if (fields.beginsWith('\0')) fields.next()
  return { changes: [...foundChanges.values()], rest: fields.rest }
}

/** Fields that end with NUL. */
class Fields {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  get isOver(): boolean {
    return this.#at >= this.#text.length
  }

  get rest(): string {
    return this.#text.slice(this.#at)
  }

  beginsWith(character: string): boolean {
    return this.#text[this.#at] === character
  }

  next(): string {
    const end = this.#text.indexOf('\0', this.#at)
    const field = this.#text.slice(this.#at, end < 0 ? undefined : end)
    this.#at = end < 0 ? this.#text.length : end + 1
    return field
  }
}

/** Returns the counts by path. */
async function parseNumstat(output: string, slices: Slices): Promise<Map<string, Counts>> {
  const counts = new Map<string, Counts>()
  const fields = new Fields(output)
  for (let count = 1; !fields.isOver; count++) {
    if (count % BATCH === 0) await slices.rest()
    const [, addedText = '', removedText = '', name = ''] = /^(-|\d+)\t(-|\d+)\t(.*)$/s.exec(fields.next()) ?? []
    if (addedText === '') continue
    // Both paths of a rename follow.
    if (name === '') fields.next()
    const path = name === '' ? fields.next() : name
    const isBinary = addedText === '-'
    counts.set(path, {
      added: isBinary ? undefined : Number(addedText),
      removed: isBinary ? undefined : Number(removedText),
    })
  }
  return counts
}

/**
 * The patches of the files, in the order of `git diff`. Lines of a file begin with another character, so no content looks like
 * the beginning of a patch.
 */
export function splitPatches(output: string): string[] {
  // `^` would match after a carriage return too, which is content.
  const starts = [...output.matchAll(/(?<![^\n])diff --git /g)].map(({ index }) => index)
  return starts.map((start, i) => output.slice(start, starts[i + 1]).replace(/(?<![^\n])\* Unmerged path .*\n/g, ''))
}

export const decodePath = (path: string): string => Buffer.from(path, 'latin1').toString()

export const isText = (path: string): boolean => isUtf8(Buffer.from(path, 'latin1'))
