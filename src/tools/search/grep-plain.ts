/**
 * Greps without ripgrep: for plain text only, and says so. A regular expression of JavaScript could keep the server's
 * process busy for hours.
 */
import { parseJailPath } from '../../files/jail/jail-path.ts'
import { searchFiles } from '../../files/search/search-files.ts'
import { EditorError } from '../editor/editor-faults.ts'
import type { GrepQuestion, GrepResult } from './grep-question.ts'

const NOTE = '[ripgrep is not installed on this server, so the pattern was searched for as plain text.]'

/** Further matches would be cut anyway. */
const MAX_MATCHES = 1000

/** Throws an `EditorError` for what needs ripgrep. */
export async function searchPlainText({ input, place, without, redact }: GrepQuestion): Promise<GrepResult> {
  const text = literalOf(input.pattern)
  const needing = (['type', '-A', '-B', '-C'] as const).find((name) => (input[name] ?? 0) !== 0)
  if (text === undefined || needing !== undefined || input.multiline || place.only !== undefined)
    throw new EditorError(
      'ripgrep is not installed on this server, so Grep finds plain text in directories only: no regular expressions, no type, context or multiline, no single file. Use Bash: grep -rnE.',
    )
  const query = { q: input.glob, content: text, ignore_case: input['-i'], limit: MAX_MATCHES, path: '' }
  const { items, truncated } = await searchFiles(place.jail, parseJailPath(''), query, {
    ripgrep: undefined,
    redact,
    enters: (name) => !without.includes(name.toString()),
    signal: place.signal,
  })
  const lines = layOut(
    items.map(({ path, line = 0, text: shownText = '' }) => ({ path: place.shown(path), line, shown: shownText })),
    input,
  )
  const isCut = truncated || lines.length > input.head_limit
  const more = isCut ? ['[There may be more matches.]'] : []
  return { lines: lines.slice(0, input.head_limit), notes: [...more, NOTE], isCut }
}

type Match = { readonly path: string; readonly line: number; readonly shown: string }

function layOut(matches: readonly Match[], { output_mode, '-n': withNumbers }: GrepQuestion['input']): string[] {
  if (output_mode === 'content')
    return matches.map(({ path, line, shown }) => `${path}:${withNumbers ? `${line}:` : ''}${shown}`)
  const counts = new Map<string, number>()
  for (const { path } of matches) counts.set(path, (counts.get(path) ?? 0) + 1)
  return [...counts].map(([path, count]) => (output_mode === 'count' ? `${path}:${count}` : path))
}

/** The text that a pattern stands for; undefined where it stands for more than one. */
function literalOf(pattern: string): string | undefined {
  const text = pattern.replaceAll(/\\([\\.^$*+?()[\]{}|/-])/g, '\0$1')
  if (/(^|[^\0])[\\.^$*+?()[\]{}|]/.test(text) || text.includes('\n')) return undefined
  return text.replaceAll('\0', '')
}
