/** Reads the output of git for differences, with `--raw -z` and then `--numstat` or `--patch`. */
import { isUtf8 } from 'node:buffer'
import type { FileDiffStatus, FileDiff } from '../../contract/diff.ts'
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

/** Reads `--raw --numstat -z`. */
export function parseDifferences(output: string): readonly FileDifference[] {
  const { changes, rest } = parseRaw(output)
  const counts = parseNumstat(rest)
  return changes.map((change) => ({ ...change, ...(counts.get(change.path) ?? NO_LINES) }))
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
export function parseRaw(output: string): { readonly changes: readonly RawChange[]; readonly rest: string } {
  const foundChanges = new Map<string, RawChange>()
  let at = 0
  const next = () => {
    const end = output.indexOf('\0', at)
    const field = output.slice(at, end < 0 ? undefined : end)
    at = end < 0 ? output.length : end + 1
    return field
  }
  while (output[at] === ':') {
    const [oldMode = '', newMode = '', , , letter = ''] = next().slice(1).split(' ')
    const first = next()
    const hasTwo = letter.startsWith('R') || letter.startsWith('C')
    const path = hasTwo ? next() : first
    const status = CHANGES[letter[0] ?? '']
    const oldPath = hasTwo ? first : undefined
    const base = { path, oldPath, oldMode, newMode }
    if (status) foundChanges.set(path, { ...base, status, patches: status === 'type_changed' ? 2 : 1 })
    // A conflict whose file was removed.
    else if (!foundChanges.has(path)) foundChanges.set(path, { ...base, status: 'modified', patches: 0 })
  }
  // An empty field ends the list.
  return { changes: [...foundChanges.values()], rest: output[at] === '\0' ? output.slice(at + 1) : output.slice(at) }
}

/** Returns the counts by path. */
function parseNumstat(output: string): Map<string, Counts> {
  const counts = new Map<string, Counts>()
  const fields = output.split('\0').values()
  for (const field of fields) {
    const [, addedText = '', removedText = '', name = ''] = /^(-|\d+)\t(-|\d+)\t(.*)$/s.exec(field) ?? []
    if (addedText === '') continue
    // Both paths of a rename follow.
    if (name === '') fields.next()
    const path = name === '' ? (fields.next().value ?? '') : name
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
