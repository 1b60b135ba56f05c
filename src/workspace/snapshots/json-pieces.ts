/** Long lists as lines of JSON, a few hundred items in each: neither writing nor reading them blocks the event loop. */
import type { Slices } from '../../lib/time-slices.ts'

/** A part of a list: its name, and some of its items in order. */
export type JsonPiece = readonly [list: string, items: readonly unknown[]]

const ITEMS = 256
const END = 'null'
const NEWLINE = 10

/** Yields the head, the lists, and a mark without which the text is not whole. */
export async function* writePieces(
  head: unknown,
  lists: Iterable<readonly [name: string, items: Iterable<unknown>]>,
  slices: Slices,
): AsyncGenerator<string> {
  yield `${JSON.stringify(head)}\n`
  for (const [name, items] of lists)
    for (let rest = Iterator.from(items), some = take(rest); some.length > 0; some = take(rest)) {
      await slices.rest()
      const piece: JsonPiece = [name, some]
      yield `${JSON.stringify(piece)}\n`
    }
  yield END
}

function take(items: Iterator<unknown>): unknown[] {
  const some: unknown[] = []
  while (some.length < ITEMS) {
    const { done, value } = items.next()
    if (done) break
    some.push(value)
  }
  return some
}

/** Returns the head, and the pieces one after the other. Throws if it is not what `writePieces` yields. */
export function readPieces(content: Buffer, slices: Slices): { head: unknown; pieces: AsyncGenerator<JsonPiece> } {
  const end = content.lastIndexOf(NEWLINE)
  if (content.toString('latin1', end + 1) !== END) throw new Error('the end is missing')
  const start = content.indexOf(NEWLINE) + 1
  return { head: JSON.parse(content.toString('utf8', 0, start)), pieces: piecesIn(content, [start, end], slices) }
}

async function* piecesIn(content: Buffer, [from, to]: readonly [number, number], slices: Slices) {
  for (let start = from; start < to;) {
    await slices.rest()
    const end = content.indexOf(NEWLINE, start)
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `writePieces` has written it
    yield JSON.parse(content.toString('utf8', start, end)) as JsonPiece
    start = end + 1
  }
}
