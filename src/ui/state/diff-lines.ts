/** The lines of a diff, each with the place that a comment on it keeps. Pure. */
import type { FileDiff } from '../../contract/diff.ts'

/** A line of a file. Its number and its text are those of the version of its side. */
export type LineAnchor = {
  readonly path: string
  /** `old`: the line was removed. */
  readonly side: 'old' | 'new'
  readonly number: number
  readonly text: string
}

export type DiffRow = {
  readonly key: string
  readonly path: string
  /** The line as git writes it, with its mark. */
  readonly text: string
  /** Absent for heads of files and of parts. */
  readonly anchor?: LineAnchor
  readonly file?: FileDiff
  /** The head of a file that git does not know. */
  readonly newFile?: NewFile
}

type NewFile = { readonly isShown: boolean; readonly isCut: boolean }

/** The same line has the same key in every diff that shows it. No path and no line has a NUL. */
export const keyOfAnchor = ({ path, side, number, text }: LineAnchor): string => `${path}\0${side}\0${number}\0${text}`

/** Returns the head of a file that git does not know, and its lines as far as they were read. */
export function rowsOfNewFile(path: string, content: { readonly text: string; readonly isWhole: boolean } | undefined) {
  const newFile = { isShown: content !== undefined, isCut: content?.isWhole === false }
  const head: DiffRow = { key: `untracked\0${path}`, path, text: path, newFile }
  if (content === undefined || content.text === '') return [head]
  const rows = content.text
    .replace(/\n$/, '')
    .split('\n')
    .map((text, index): DiffRow => {
      const anchor = { path, side: 'new', number: index + 1, text } as const
      return { key: keyOfAnchor(anchor), path, text: `+${text}`, anchor }
    })
  return [head, ...rows]
}

/** Returns a header for the file, and the lines of its patch. */
export function rowsOfFile(file: FileDiff): DiffRow[] {
  const { path, patch = '' } = file
  const rows: DiffRow[] = [{ key: path, path, text: path, file }]
  const start = patch.indexOf('\n@@')
  if (start === -1) return rows
  const next = { old: 0, new: 0 }
  /** Lines of each side that the part still has. */
  const remaining = { old: 0, new: 0 }
  const lines = patch
    .slice(start + 1)
    .replace(/\n$/, '')
    .split('\n')
  for (const [index, text] of lines.entries()) {
    const hunk = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))?/.exec(text)
    const isBetween = remaining.old <= 0 && remaining.new <= 0
    if (hunk && isBetween) {
      Object.assign(next, { old: Number(hunk[1]), new: Number(hunk[3]) })
      Object.assign(remaining, { old: Number(hunk[2] ?? 1), new: Number(hunk[4] ?? 1) })
    }
    if ((hunk && isBetween) || text.startsWith('\\')) {
      rows.push({ key: `${path}\0${index}`, path, text })
      continue
    }
    // A file that has become a link has a second head, which is not a line of either.
    if (isBetween) continue
    const side = text.startsWith('-') ? 'old' : 'new'
    const anchor = { path, side, number: next[side], text: text.slice(1) } as const
    rows.push({ key: keyOfAnchor(anchor), path, text, anchor })
    for (const each of sidesOf(text)) {
      next[each] += 1
      remaining[each] -= 1
    }
  }
  return rows
}

function sidesOf(line: string): readonly ('old' | 'new')[] {
  if (line.startsWith('+')) return ['new']
  return line.startsWith('-') ? ['old'] : ['old', 'new']
}
