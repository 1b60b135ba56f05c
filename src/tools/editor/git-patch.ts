/**
 * The difference of two contents of a file as a patch that `git apply` takes. Only what is between the first and the last
 * difference is compared line by line: the rest of a file of megabytes costs one comparison.
 */
import { isUtf8 } from 'node:buffer'
import { setImmediate as yieldToLoop } from 'node:timers/promises'
import { formatPatch, structuredPatch } from 'diff'
import type { StructuredPatchHunk } from 'diff'
import type { Content } from './edit-history.ts'
import { countLines, difference, lineStart } from './text-edit.ts'

/** `oldPath`: the path before a move. `mode`: that of a file that is created or deleted, such as `100644`. */
export type PatchHead = { readonly path: string; readonly oldPath?: string | undefined; readonly mode: string }

/** Lines before and after each change. */
const CONTEXT_LINES = 3

/**
 * Lines that differ. Beyond it the search for the shortest patch would take long, by the square of this number: all lines in
 * between are replaced.
 */
const MAX_DIFFERENT_LINES = 200

/** Characters that are compared line by line, in both texts together. */
const MAX_COMPARED_CHARS = 256 * 1024

/** Returns true for what is binary to git, and for what is not UTF-8: a patch has one encoding. */
export const isBinary = (content: Content): boolean =>
  content !== undefined && (content.includes(0) || !isUtf8(content))

/**
 * A text that is `undefined` stands for a file that does not exist. Resolves to undefined if the texts are equal, if the patch
 * would be longer than `maxChars`, or if the part that has changed is too long to be compared.
 */
export async function gitPatch(
  before: string | undefined,
  after: string | undefined,
  { path, oldPath, mode }: PatchHead,
  maxChars: number,
): Promise<string | undefined> {
  const isWhole = before === undefined || after === undefined
  if (isWhole && (before ?? after ?? '').length > maxChars) return undefined
  const hunks = await hunksOf(before ?? '', after ?? '', maxChars)
  if (!hunks || (hunks.length === 0 && !isWhole && oldPath === undefined)) return undefined
  return formatPatch({
    isGit: true,
    oldFileName: before === undefined ? '/dev/null' : `a/${oldPath ?? path}`,
    newFileName: after === undefined ? '/dev/null' : `b/${path}`,
    oldHeader: undefined,
    newHeader: undefined,
    ...(before === undefined && { isCreate: true, newMode: mode }),
    ...(after === undefined && { isDelete: true, oldMode: mode }),
    ...(oldPath !== undefined && { isRename: true }),
    hunks: [...hunks],
  })
}

async function hunksOf(
  before: string,
  after: string,
  maxChars: number,
): Promise<readonly StructuredPatchHunk[] | undefined> {
  // Each step takes a while for a file of many megabytes: yield between them.
  await yieldToLoop()
  const { start, end, replacement } = difference(before, after)
  if (start === end && replacement === '') return []
  const from = contextStart(before, start)
  const rest = contextEnd(before, end) - end
  const old = before.slice(from, end + rest)
  const now = after.slice(from, start + replacement.length + rest)
  const length = old.length + now.length
  if (length > MAX_COMPARED_CHARS) return undefined
  const options = { context: CONTEXT_LINES, maxEditLength: MAX_DIFFERENT_LINES }
  const shortest = structuredPatch('', '', old, now, '', '', options)
  if (!shortest && length > maxChars) return undefined
  const { hunks } = shortest ?? { hunks: [replacedWhole(old, now)] }
  await yieldToLoop()
  const linesBefore = countLines(before.slice(0, from))
  return hunks.map((hunk) => ({
    ...hunk,
    oldStart: hunk.oldStart + linesBefore,
    newStart: hunk.newStart + linesBefore,
  }))
}

/** Returns where the lines begin that are shown before the first difference. */
function contextStart(text: string, offset: number): number {
  let at = offset
  for (let line = 0; line <= CONTEXT_LINES && at > 0; line++) at = at < 2 ? 0 : text.lastIndexOf('\n', at - 2) + 1
  return at
}

/** Returns where the lines end that are shown after the last difference. */
const contextEnd = (text: string, offset: number): number => offset + lineStart(text.slice(offset), CONTEXT_LINES + 1)

const NO_LINE_END = String.raw`\ No newline at end of file`

/** All lines of the one, then all of the other. */
function replacedWhole(old: string, now: string): StructuredPatchHunk {
  return {
    oldStart: 1,
    newStart: 1,
    oldLines: countLines(old),
    newLines: countLines(now),
    lines: [...withSign(old, '-'), ...withSign(now, '+')],
  }
}

function withSign(text: string, sign: '-' | '+'): string[] {
  if (text === '') return []
  const isOpen = !text.endsWith('\n')
  const lines = (isOpen ? text : text.slice(0, -1)).split('\n').map((line) => sign + line)
  return isOpen ? [...lines, NO_LINE_END] : lines
}
