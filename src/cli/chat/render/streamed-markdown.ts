/**
 * Draws Markdown that grows: finished blocks are drawn once, and only the end again. To draw 36 KB takes 70 ms, which
 * a person who types at the same time would notice. The complete answer is drawn as a whole.
 */
import { wrapText } from './lines.ts'

type DrawnText = { readonly width: number; readonly text: string; readonly lines: readonly string[] }
type Draw = (text: string) => string[]

/** Characters at the end that are drawn each time. */
const OPEN_CHARS = 3000
/** The length of a block that does not end, such as a long table: the rest of it is plain text until the answer is complete. */
const MAX_OPEN_CHARS = 6000
/** Answers that grow at the same time. What a failed attempt has written is never complete. */
const MAX_ANSWERS = 8
/** The beginning of a block that does not belong to the one before, as an item of a list can; or that of a fence. */
const BLOCKS_AND_FENCES = /\n\n(?=[A-Za-z#])|^ {0,3}(?:```|~~~)/gm

export class StreamedMarkdown {
  readonly #drawn = new Map<string, DrawnText>()

  lines(id: string, text: string, width: number, draw: Draw): string[] {
    const knownText = this.#drawn.get(id)
    let drawnText =
      knownText?.width === width && text.startsWith(knownText.text) ? knownText : { width, text: '', lines: [] }
    while (text.length - drawnText.text.length > OPEN_CHARS) {
      const next = withNextPart(drawnText, text, draw)
      if (next === drawnText) break
      drawnText = next
    }
    this.#keep(id, drawnText)
    return [...drawnText.lines, ...draw(text.slice(drawnText.text.length))]
  }

  forget(id: string): void {
    this.#drawn.delete(id)
  }

  #keep(id: string, drawnText: DrawnText): void {
    this.#drawn.delete(id)
    this.#drawn.set(id, drawnText)
    const [oldest] = this.#drawn.keys()
    if (this.#drawn.size > MAX_ANSWERS && oldest !== undefined) this.#drawn.delete(oldest)
  }
}

/** Returns the same object if nothing more is finished. */
function withNextPart(drawnText: DrawnText, text: string, draw: Draw): DrawnText {
  const open = text.slice(drawnText.text.length, drawnText.text.length + 2 * MAX_OPEN_CHARS)
  const finishedText = finishedPart(open)
  if (finishedText !== '')
    return {
      ...drawnText,
      text: drawnText.text + finishedText,
      lines: [...drawnText.lines, ...withGap(draw(finishedText))],
    }
  if (open.length <= MAX_OPEN_CHARS) return drawnText
  const end = open.lastIndexOf('\n', MAX_OPEN_CHARS) + 1 || MAX_OPEN_CHARS
  const part = open.slice(0, end)
  return {
    ...drawnText,
    text: drawnText.text + part,
    lines: [...drawnText.lines, ...wrapText(part.trimEnd(), drawnText.width)],
  }
}

/** Blocks are separated by an empty line. */
const withGap = (lines: string[]): string[] => (lines.at(-1)?.trim() === '' ? lines : [...lines, ''])

/** Returns the text up to the last block that begins outside of fence code. */
function finishedPart(text: string): string {
  let [end, isCode] = [0, false]
  for (const { 0: match, index } of text.matchAll(BLOCKS_AND_FENCES)) {
    if (match !== '\n\n') isCode = !isCode
    else if (!isCode) end = index + match.length
  }
  return text.slice(0, end)
}
