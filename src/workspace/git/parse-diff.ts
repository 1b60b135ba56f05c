/** Reads the output of `git diff --raw --numstat -z` and `git diff --raw --patch -z`. */
import { isUtf8 } from 'node:buffer'
import type { GitChangeKind } from '../../contract/git.ts'
import { CHANGES } from './parse-status.ts'

export type RawChange = {
  /** As on disk: each byte is one character. */
  readonly path: string
  readonly oldPath: string | undefined
  readonly change: GitChangeKind
  readonly oldMode: string
  readonly newMode: string
  /** How many patches `git diff` writes for it: a change of the type is a removal and an addition. */
  readonly patches: number
}

export type Counts = { readonly added: number | null; readonly removed: number | null }

/** In the order of git, one for each path. `rest` is what follows. */
export function parseRaw(output: string): { readonly changes: readonly RawChange[]; readonly rest: string } {
  const found = new Map<string, RawChange>()
  let at = 0
  const next = () => {
    const end = output.indexOf('\0', at)
    const field = output.slice(at, end < 0 ? undefined : end)
    at = end < 0 ? output.length : end + 1
    return field
  }
  while (output[at] === ':') {
    const [oldMode = '', newMode = '', , , status = ''] = next().slice(1).split(' ')
    const first = next()
    const hasTwo = status.startsWith('R') || status.startsWith('C')
    const path = hasTwo ? next() : first
    const change = CHANGES[status[0] ?? '']
    const oldPath = hasTwo ? first : undefined
    const base = { path, oldPath, oldMode, newMode }
    if (change) found.set(path, { ...base, change, patches: change === 'type_changed' ? 2 : 1 })
    // A conflict whose file was removed.
    else if (!found.has(path)) found.set(path, { ...base, change: 'modified', patches: 0 })
  }
  // An empty field ends the list.
  return { changes: [...found.values()], rest: output[at] === '\0' ? output.slice(at + 1) : output.slice(at) }
}

/** By path. */
export function parseNumstat(output: string): Map<string, Counts> {
  const counts = new Map<string, Counts>()
  const fields = output.split('\0').values()
  for (const field of fields) {
    const [, added = '', removed = '', name = ''] = /^(-|\d+)\t(-|\d+)\t(.*)$/s.exec(field) ?? []
    if (added === '') continue
    // Of a rename, both paths follow.
    if (name === '') fields.next()
    const path = name === '' ? (fields.next().value ?? '') : name
    counts.set(path, { added: added === '-' ? null : Number(added), removed: removed === '-' ? null : Number(removed) })
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

export const decoded = (path: string): string => Buffer.from(path, 'latin1').toString()

export const isText = (path: string): boolean => isUtf8(Buffer.from(path, 'latin1'))
