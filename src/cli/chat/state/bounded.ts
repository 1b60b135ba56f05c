/** Bounds of what the chat keeps and shows. The log has all of it. */

/** Characters of one text: a person does not read more of it in a terminal. */
const MAX_KEPT_CHARS = 60_000
/** The beginning of a longer text moves in steps, because each move draws everything again. */
const STEP_CHARS = 20_000
/** Characters in which a cut looks for the beginning of a line. */
const LINE_CHARS = 500
/** Strings and fields inside the input of a call. */
const MAX_FIELDS = 100

/** The end of a text, and how many characters are missing before it. */
export function endOf(text: string): { readonly text: string; readonly cut: number } {
  if (text.length <= MAX_KEPT_CHARS) return { text, cut: 0 }
  const at = Math.ceil((text.length - MAX_KEPT_CHARS) / STEP_CHARS) * STEP_CHARS
  const newline = text.slice(at, at + LINE_CHARS).indexOf('\n') + 1
  return { text: text.slice(at + newline), cut: at + newline }
}

/** The beginning of a text. */
export const startOf = (text: string, max = MAX_KEPT_CHARS): string =>
  text.length > max ? `${text.slice(0, max)}\n[${text.length - max} more characters are in the log]` : text

/** The input of a call, with long strings cut. Never for an approval, which shows everything. */
export function boundedInput(input: unknown): unknown {
  if (typeof input === 'string') return startOf(input)
  if (Array.isArray(input)) return input.slice(0, MAX_FIELDS).map(boundedInput)
  if (typeof input !== 'object' || input === null) return input
  const fields = Object.entries(input).slice(0, MAX_FIELDS)
  return Object.fromEntries(fields.map(([name, value]) => [name, boundedInput(value)]))
}
