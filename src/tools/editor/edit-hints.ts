/** Explains why a text to be replaced was not found in the file. */
import { indexIgnoringSpace } from '../../lib/text/find-text.ts'
import { createSlices } from '../../lib/time-slices.ts'
import { withPlainLineEnds } from './line-ends.ts'
import { findMatches, lineAt } from './text-edit.ts'

/** Longer texts are quoted in part. */
const MAX_QUOTED = 200

/** The file, and the tool's name of the searched text. */
export type SearchedFile = { readonly path: string; readonly parameter: string }

export async function explainNoMatch(
  { path, parameter }: SearchedFile,
  text: string,
  wantedText: string,
): Promise<string> {
  const quotedText = wantedText.length > MAX_QUOTED ? `${wantedText.slice(0, MAX_QUOTED).toWellFormed()}…` : wantedText
  const slices = createSlices()
  let hint: string | undefined
  for (const find of HINTS) {
    // Each may scan all of a large file.
    await slices.rest()
    hint ??= await find(text, wantedText)
  }
  return `No replacement was performed, ${parameter} \`${quotedText}\` did not appear verbatim in ${path}. ${hint ?? 'View the file to see what it has.'}`
}

type Hint = (text: string, wanted: string) => Promise<string | undefined> | string | undefined

/** The first hint that applies is shown. */
const HINTS: readonly Hint[] = [
  async (text, wantedText) => {
    const bare = wantedText.replace(/^ *\d+\t/gm, '')
    const at = bare === wantedText ? undefined : await lineOf(text, bare)
    return at && `Without the line numbers of the view it does, ${at}: leave them out.`
  },
  async (text, wantedText) => {
    const at = wantedText.includes('\r\n') ? await lineOf(text, withPlainLineEnds(wantedText)) : undefined
    return at && `With other line ends it does, ${at}: write line ends as plain newlines.`
  },
  (text, wantedText) => {
    const at = lineIgnoringSpace(text, wantedText)
    return (
      at &&
      `A text that differs only in whitespace is ${at}: view those lines, and copy indentation, tabs and blank lines exactly.`
    )
  },
  (_, wantedText) =>
    wantedText.includes('<secret:')
      ? 'Where a view says <secret:NAME>, the file has the hidden value: replace the text around it.'
      : undefined,
  (text, wantedText) => {
    const first = firstLine(wantedText)
    const at = first && lineIgnoringSpace(text, first)
    return at && `Its first line is ${at}, but what follows is different: view the lines from there.`
  },
]

/** Returns the first line that is not blank. */
function firstLine(text: string): string | undefined {
  const start = text.search(/\S/)
  if (start < 0) return undefined
  const end = text.indexOf('\n', start)
  return text.slice(start, end < 0 ? undefined : end)
}

/** Returns "at line 7", or undefined if it does not occur. */
async function lineOf(text: string, wantedText: string): Promise<string | undefined> {
  if (wantedText === '') return undefined
  const { searched, starts } = await findMatches(text, wantedText)
  return starts[0] === undefined ? undefined : `at line ${lineAt(searched, starts[0])}`
}

/** Ignores all whitespace in both. */
function lineIgnoringSpace(text: string, wantedText: string): string | undefined {
  const at = indexIgnoringSpace(text, wantedText)
  return at < 0 ? undefined : `at line ${lineAt(text, at)}`
}
