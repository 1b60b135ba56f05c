/** The change that a call makes to a file, as lines. A call has the text before and after it, never the whole file. */
import { fieldsOfInput } from '../../../contract/events/call-title.ts'

export type DiffLine = { readonly sign: '+' | '-' | ' ' | '@'; readonly text: string; readonly line?: number }

/** Larger parts are shown as removed and added: comparing every line with every other one would take too long. */
const MAX_COMPARED_LINES = 500

export type CallDiff = {
  readonly lines: readonly DiffLine[]
  /** Fields of the input that it shows. */
  readonly fields: readonly string[]
}

const PAIRS = [
  ['old_string', 'new_string'],
  ['old_str', 'new_str'],
  ['', 'file_text'],
  ['', 'content'],
] as const

/** Returns undefined for a call that is not an edit. */
export function diffOfCall(input: unknown): CallDiff | undefined {
  const fields = fieldsOfInput(input)
  const { input: patch, edits } = fields
  if (typeof patch === 'string' && patch.startsWith('*** Begin Patch'))
    return { lines: linesOfPatch(patch), fields: ['input'] }
  if (Array.isArray(edits)) return { lines: edits.flatMap(linesOfEdit), fields: ['edits'] }
  for (const [oldName, newName] of PAIRS) {
    const [before = '', after] = [fields[oldName], fields[newName]]
    if (typeof before === 'string' && typeof after === 'string')
      return { lines: diffLines(before, after), fields: [oldName, newName] }
  }
  return undefined
}

/** Adds the other fields, such as `replace_all`. */
function linesOfEdit(edit: unknown, at: number): DiffLine[] {
  const diff = diffOfCall(edit)
  const others = Object.entries(fieldsOfInput(edit)).filter(([name]) => diff?.fields.includes(name) !== true)
  const rest = diff && others.length === 0 ? '' : ` ${JSON.stringify(diff ? Object.fromEntries(others) : edit)}`
  return [{ sign: '@', text: `edit ${at + 1}${rest}` }, ...(diff?.lines ?? [])]
}

function linesOfPatch(patch: string): DiffLine[] {
  return patch.split('\n').map((line) => {
    const sign = line[0]
    if (sign === '+' || sign === '-' || sign === ' ') return { sign, text: line.slice(1) }
    return { sign: '@', text: line }
  })
}

function diffLines(before: string, after: string): DiffLine[] {
  const [a, b] = [linesOf(before), linesOf(after)]
  const start = commonLength(a, b)
  const end = Math.min(commonLength(a.toReversed(), b.toReversed()), Math.min(a.length, b.length) - start)
  const [oldPart, newPart] = [a.slice(start, a.length - end), b.slice(start, b.length - end)]
  return [
    ...a.slice(0, start).map((text): DiffLine => ({ sign: ' ', text })),
    ...compare(oldPart, newPart),
    ...a.slice(a.length - end).map((text): DiffLine => ({ sign: ' ', text })),
    ...lastNewline(before, after),
  ]
}

function lastNewline(before: string, after: string): DiffLine[] {
  if (before === '' || after === '' || before.endsWith('\n') === after.endsWith('\n')) return []
  return [{ sign: '@', text: `The newline at the end is ${after.endsWith('\n') ? 'added' : 'removed'}.` }]
}

const linesOf = (text: string): string[] => (text === '' ? [] : text.replace(/\n$/, '').split('\n'))

function commonLength(a: readonly string[], b: readonly string[]): number {
  const differs = a.findIndex((line, at) => line !== b[at])
  return differs === -1 ? Math.min(a.length, b.length) : differs
}

/** Finds the longest common subsequence. */
function compare(a: readonly string[], b: readonly string[]): DiffLine[] {
  const removedLine = (text: string): DiffLine => ({ sign: '-', text })
  const addedLine = (text: string): DiffLine => ({ sign: '+', text })
  if (a.length > MAX_COMPARED_LINES || b.length > MAX_COMPARED_LINES)
    return [...a.map(removedLine), ...b.map(addedLine)]
  const lengths = commonLengths(a, b)
  const lengthAt = (i: number, j: number) => lengths[i]?.[j] ?? 0
  const lines: DiffLine[] = []
  let [i, j] = [0, 0]
  while (i < a.length && j < b.length) {
    const [oldLine = '', newLine = ''] = [a[i], b[j]]
    if (oldLine === newLine) lines.push({ sign: ' ', text: oldLine })
    else if (lengthAt(i + 1, j) >= lengthAt(i, j + 1)) lines.push(removedLine(oldLine))
    else lines.push(addedLine(newLine))
    const last = lines.at(-1)?.sign
    if (last !== '+') i++
    if (last !== '-') j++
  }
  return [...lines, ...a.slice(i).map(removedLine), ...b.slice(j).map(addedLine)]
}

/** The length of the longest common subsequence of what follows each pair of positions. */
function commonLengths(a: readonly string[], b: readonly string[]): Uint16Array[] {
  const lengths = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1))
  for (let i = a.length - 1; i >= 0; i--) {
    const [row, next] = [lengths[i], lengths[i + 1]]
    if (!row || !next) continue
    for (let j = b.length - 1; j >= 0; j--)
      row[j] = a[i] === b[j] ? (next[j + 1] ?? 0) + 1 : Math.max(next[j] ?? 0, row[j + 1] ?? 0)
  }
  return lengths
}
