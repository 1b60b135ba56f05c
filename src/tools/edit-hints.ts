/** Why a text that was to be replaced is not in the file, as far as that can be seen. */
import { findMatches, lineAt } from './text-edit.ts'

/** Longer texts are quoted in part. */
const MAX_QUOTED = 200

export function explainNoMatch(path: string, text: string, wanted: string): string {
  const quoted = wanted.length > MAX_QUOTED ? `${wanted.slice(0, MAX_QUOTED).toWellFormed()}…` : wanted
  const hint = HINTS.map((find) => find(text, wanted)).find((found) => found !== undefined)
  return `No replacement was performed, old_str \`${quoted}\` did not appear verbatim in ${path}. ${hint ?? 'View the file to see what it has.'}`
}

type Hint = (text: string, wanted: string) => string | undefined

/** The first that finds something is told. */
const HINTS: readonly Hint[] = [
  (text, wanted) => {
    const bare = wanted.replace(/^ *\d+\t/gm, '')
    const at = bare === wanted ? undefined : lineOf(text, bare)
    return at && `Without the line numbers of the view it does, ${at}: leave them out.`
  },
  (text, wanted) => {
    const at = lineOf(text, wanted.replaceAll('\r\n', '\n'))
    return at && `With other line ends it does, ${at}: write line ends as plain newlines.`
  },
  (text, wanted) => {
    const at = lineIgnoringSpace(text, wanted)
    return (
      at &&
      `A text that differs only in whitespace is ${at}: view those lines, and copy indentation, tabs and blank lines exactly.`
    )
  },
  (_, wanted) =>
    wanted.includes('<secret:')
      ? 'Where a view says <secret:NAME>, the file has the hidden value: replace the text around it.'
      : undefined,
  (text, wanted) => {
    const first = wanted.split('\n').find((each) => each.trim() !== '')
    const at = first && lineIgnoringSpace(text, first)
    return at && `Its first line is ${at}, but what follows is different: view the lines from there.`
  },
]

/** "at line 7", or undefined when it is nowhere. */
function lineOf(text: string, wanted: string): string | undefined {
  if (wanted === '') return undefined
  const { searched, starts } = findMatches(text, wanted)
  return starts[0] === undefined ? undefined : `at line ${lineAt(searched, starts[0])}`
}

/** As if neither had any whitespace. */
function lineIgnoringSpace(text: string, wanted: string): string | undefined {
  const bare = wanted.replaceAll(/\s+/g, '')
  const found = bare === '' ? -1 : text.replaceAll(/\s+/g, '').indexOf(bare)
  if (found === -1) return undefined
  // Back to the offset in the text itself: that of the character with so many others before it that are no whitespace.
  let passed = 0
  for (const { 0: word, index } of text.matchAll(/\S+/g)) {
    if (passed + word.length > found) return `at line ${lineAt(text, index + found - passed)}`
    passed += word.length
  }
  return undefined
}
