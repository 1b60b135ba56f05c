/** Phrases that readers stumble over, and where they are in a text. The list may grow; a phrase leaves it only with a reason. */

export type Phrase = {
  /** What must not be written. A space stands for any white space, also for a line break. */
  readonly pattern: string
  readonly instead: string
}

export type Finding = {
  readonly line: number
  readonly found: string
  /** The words around it. */
  readonly context: string
  readonly instead: string
}

/** Phrases left in the comments and texts of the sources. Lower it when there are fewer; never raise it. */
export const MOST_IN_SOURCES = 393

export const PHRASES: readonly Phrase[] = [
  { pattern: 'anew', instead: 'again, or: from the beginning' },
  { pattern: 'told(?! apart)', instead: 'reported, returned, informed, shown' },
  { pattern: 'tells? of', instead: 'reports, describes' },
  {
    pattern: '(?:has|have|takes?|took) (?:its|their) places?',
    instead: 'say what happens: is atomic, replaces, appears',
  },
  { pattern: 'who has the key', instead: 'every client with the master key' },
  { pattern: 'walls?(?! clock|-clock)', instead: 'sandbox' },
  { pattern: 'walled off', instead: 'isolated' },
  { pattern: '(?<!there )(?:is|are|was|were) no (?!longer\\b|more\\b)\\w+', instead: 'is not a, is not an' },
  { pattern: '(?<!there )(?:is|are|was) none', instead: 'is not one, has none' },
  { pattern: 'whoever', instead: 'the client, the reader, the caller' },
  { pattern: '(?-i:Who) \\w+(?=[^.?]*\\.)', instead: 'A client that, a reader that' },
  { pattern: 'of (?:its|their|our|his) own', instead: 'its own …' },
  { pattern: 'comes? twice', instead: 'duplicates' },
  { pattern: '[Tt]wice is fine', instead: 'idempotent' },
  { pattern: 'on (?:its|their) way', instead: 'say what happens: is being sent, is being created' },
  { pattern: 'lets? go of', instead: 'releases, closes' },
  { pattern: 'at last(?! \\w+ minutes)', instead: 'finally, at most' },
  { pattern: 'gives? way', instead: 'has lower priority, is removed' },
  { pattern: 'carr(?:y|ies|ied|ying) out', instead: 'execute' },
  { pattern: 'letter for letter', instead: 'exactly' },
  { pattern: '(?:go|goes|going|went|gone) on', instead: 'continue' },
  { pattern: '(?:those|what|the one) there (?:is|are)', instead: 'existing' },
  { pattern: 'there is not', instead: 'does not exist' },
  { pattern: '(?:all|none|any|nothing|nobody) but', instead: 'except, only' },
  { pattern: 'but for', instead: 'except' },
  { pattern: 'mend(?:s|ed|ing)?', instead: 'fix' },
  { pattern: 'shall', instead: 'will, must' },
  { pattern: 'would else', instead: 'would otherwise' },
  { pattern: 'hears? of', instead: 'sees, receives' },
  { pattern: '(?:came|comes?|becomes?|became) of', instead: 'the result of' },
  { pattern: 'see(?:s|ing)? to', instead: 'check, make sure' },
  { pattern: 'pass(?:es|ed)? over', instead: 'skip' },
  { pattern: 'looks? after', instead: 'recovers, handles' },
  { pattern: 'a word of', instead: 'without' },
  { pattern: 'of then', instead: 'the earlier' },
  { pattern: 'be had', instead: 'is not available' },
  { pattern: 'deeds?', instead: 'operation, action' },
  { pattern: 'has not got', instead: 'does not have' },
  { pattern: 'takes? stock', instead: 'list, count' },
  { pattern: 'stranded', instead: 'left without an answer' },
]

const RULES = PHRASES.map(({ pattern, instead }) => ({
  regex: new RegExp(`(?<![\\w-])(?:${pattern.replaceAll(' ', '\\s+(?:\\*\\s+|//\\s*)?')})(?![\\w-])`, 'gim'),
  instead,
}))

/** Every phrase of the list in a text, in the order of the lines. */
export function findPhrases(text: string): Finding[] {
  const findings = RULES.flatMap(({ regex, instead }) =>
    Array.from(text.matchAll(regex), ({ index, 0: found }) => ({
      line: lineAt(text, index),
      found: onOneLine(found),
      context: onOneLine(text.slice(Math.max(0, index - 40), index + found.length + 40)),
      instead,
    })),
  )
  return findings.toSorted((a, b) => a.line - b.line)
}

/** The words of a Markdown page: without code blocks, code and the targets of links. Lines keep their numbers. */
export function wordsOfMarkdown(text: string): string {
  return text
    .replaceAll(/^```.*?^```/gms, blank)
    .replaceAll(/`[^`\n]+`/g, blank)
    .replaceAll(/\]\([^)\n]*\)/g, blank)
}

/** The comments and the texts of a source, by their form alone. Lines keep their numbers. */
export function wordsOfSource(text: string): string {
  const parts = text.matchAll(/\/\*.*?\*\/|\/\/[^\n]*|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/gs)
  let words = ''
  let end = 0
  for (const { index, 0: part } of parts) {
    words += blank(text.slice(end, index)) + part
    end = index + part.length
  }
  return words
}

/** Every `description`, `summary` and `title` of a JSON document, one per line. */
export function wordsOfJson(text: string): string {
  const words: string[] = []
  JSON.parse(text, (key, value: unknown) => {
    if (['description', 'summary', 'title'].includes(key) && typeof value === 'string')
      words.push(value.replaceAll(/\s+/g, ' '))
    return value
  })
  return wordsOfMarkdown([...new Set(words)].join('\n\n'))
}

const blank = (text: string): string => text.replaceAll(/[^\n]/g, ' ')

const onOneLine = (text: string): string => text.replaceAll(/\s+/g, ' ')

const lineAt = (text: string, index: number): number => text.slice(0, index).split('\n').length
