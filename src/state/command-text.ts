/**
 * The text of a slash command: its arguments, the commands for the shell in it (`!` and a text in backquotes) and the
 * files (`@path`). Only what the file itself has is run or read: arguments cannot add any.
 */

export type CommandCall = { readonly name: string; readonly args: string }

/** `/name arguments`; undefined for any other text. */
export function parseCommandCall(text: string): CommandCall | undefined {
  const [match = '', name] = /^\s*\/([A-Za-z0-9][A-Za-z0-9_.:-]{0,63})(?=\s|$)/.exec(text) ?? []
  return name === undefined ? undefined : { name, args: text.slice(match.length).trim() }
}

export type CommandPart =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'shell'; readonly command: string }
  /** `text` is how it is written. */
  | { readonly kind: 'file'; readonly path: string; readonly text: string }

/** The parts of a command with its arguments in them. */
export function commandParts(template: string, args: string): CommandPart[] {
  const fill = createFill(args)
  const parts: CommandPart[] = []
  let end = 0
  for (const { index, 0: match, groups } of template.matchAll(/!`(?<command>[^`\n]+)`|(?<![^\s(])@(?<path>[^\s`]+)/g)) {
    parts.push({ kind: 'text', text: fill(template.slice(end, index)) })
    end = index + match.length
    if (groups?.['command'] !== undefined) parts.push({ kind: 'shell', command: fill(groups['command']) })
    else parts.push(filePart(match, fill(groups?.['path'] ?? '')))
  }
  parts.push({ kind: 'text', text: fill(template.slice(end)) })
  const isUsed = args === '' || PLACEHOLDER.test(template)
  return isUsed ? parts : [...parts, { kind: 'text', text: `\n\nARGUMENTS: ${args}` }]
}

/** A sentence may end behind a path. */
function filePart(match: string, filledPath: string): CommandPart {
  const path = filledPath.replace(/(?<![,.;:!?)])[,.;:!?)]+$/, '')
  return { kind: 'file', path, text: match.startsWith('@') ? `@${filledPath}` : filledPath }
}

const PLACEHOLDER = /\$(?:ARGUMENTS\b|[1-9])/

/** `$ARGUMENTS` is all of them, `$1` the first. One pass: an argument that looks like `$1` stays. */
function createFill(args: string): (text: string) => string {
  const words = splitWords(args)
  return (text) =>
    text.replaceAll(/\$(ARGUMENTS\b|[1-9])/g, (_, name: string) =>
      name === 'ARGUMENTS' ? args : (words[Number(name) - 1] ?? ''),
    )
}

/** `$9` is the last that a template can name. */
const MAX_WORDS = 9

/** Spaces, or a word: texts in quotes, other characters, and quotes without another one. A long word is several pieces. */
// oxlint-disable-next-line regexp/time -- nothing follows, so that no word is divided in another way
const PIECES = /\s+|(?:"[^"]*"|'[^']*'|[^\s"']|["']){1,4096}/g

/** Separates words as a shell does: quotes keep spaces together. Only the first words are returned. */
function splitWords(args: string): string[] {
  const words: string[] = []
  let start = 0
  for (const { 0: piece, index } of args.matchAll(PIECES)) {
    if (words.length === MAX_WORDS) return words
    if (piece.trim() !== '') continue
    if (index > start) words.push(unquote(args.slice(start, index)))
    start = index + piece.length
  }
  return start < args.length ? [...words, unquote(args.slice(start))] : words
}

const unquote = (word: string): string =>
  word.replaceAll(/"([^"]*)"|'([^']*)'/g, (_, double?: string, single?: string) => double ?? single ?? '')
