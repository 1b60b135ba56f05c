/** Finds phrases that readers stumble over. The list may grow; removing a phrase needs a reason. */

export type Phrase = {
  /** A regular expression. A space matches any white space, including a line break in a comment. */
  readonly pattern: string
  readonly instead: string
}

export type Finding = {
  readonly line: number
  readonly found: string
  /** The surrounding words. */
  readonly context: string
  readonly instead: string
}

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
  { pattern: '(?:without|not) a word of', instead: 'without' },
  { pattern: 'of then', instead: 'the earlier' },
  { pattern: 'be had', instead: 'is not available' },
  { pattern: 'deeds?', instead: 'operation, action' },
  { pattern: 'has not got', instead: 'does not have' },
  { pattern: 'takes? stock', instead: 'list, count' },
  { pattern: 'stranded', instead: 'left without an answer' },
  { pattern: 'for ever', instead: 'forever, permanently' },
  { pattern: 'for good', instead: 'permanently' },
  { pattern: 'all the same', instead: 'nevertheless' },
  { pattern: 'heed(?:s|ed)?', instead: 'respect, ignore' },
  { pattern: 'comes? to be', instead: 'is created' },
  { pattern: 'st(?:ands?|ood) (?:in|behind|beside|there|before|between)', instead: 'is, replaces' },
  { pattern: 'lies? (?:in|under|among)', instead: 'is inside' },
  { pattern: 'as (?:it|they) (?:was|were)(?=[,.;:)]|$)', instead: 'unchanged, in its former state' },
  { pattern: 'it came with', instead: 'of the request' },
  { pattern: 'beside', instead: 'in addition to, next to, during' },
  { pattern: 'under way', instead: 'in progress, active' },
  { pattern: 'is no more', instead: 'has ended, is deleted' },
  { pattern: '(?:is|are) parted', instead: 'separated' },
  { pattern: 'hears?', instead: 'receives, is notified' },
  // A comment begins with what it is about.
  { pattern: '(?<=/\\*\\*\\s+(?:\\*\\s+)?)Of', instead: 'the length of, returns, true for' },
]

/** Words that are not what a comment is about: such a comment has no subject and no verb, or its verb comes late. */
const BEGINNINGS =
  'About|Above|According|After|Again|Against|Also|Among|And|Apart|As|At|Before|Behind|Below|Besides|Between|Beyond|But|By|Despite|During|Except|For|From|In|Inside|Instead|Into|Like|Nor|Not|On|Once|Only|Onto|Or|Otherwise|Outside|Over|Per|Since|So|Straight|Such|Then|Those|Through|To|Together|Under|Unless|Unlike|Until|Up|Where|Which|Who|Whose|With|Within|Without'

/** Pronouns: a reader has to guess the noun. */
const PRONOUNS = 'One (?:after|at|for|in|that|which|with)|More (?:are|is|may|must|of|takes|than|was|would)'

const BEGINNING_RULES = [
  {
    regex: new RegExp(`(?<=/\\*\\*\\s+(?:\\*\\s+)?)(?:${BEGINNINGS}|${PRONOUNS})(?![\\w-])`, 'g'),
    instead: 'a verb or a noun first: Returns …, The key is …, Further keys are …',
  },
]

/** Finds doc comments of a source that begin without a subject. */
export function findBeginnings(text: string): Finding[] {
  return findAll(text, BEGINNING_RULES)
}

/** No line of a comment can be longer. */
const FILLED_CHARS = 100

/** Finds lines of doc comments that end in mid-sentence, and have room for the next word: they were broken again without being filled. */
export function findBrokenLines(text: string): Finding[] {
  const lines = text.split('\n')
  return lines.flatMap((line, at) => {
    const [words, next] = [wordsOfLine(line), wordsOfLine(lines[at + 1] ?? '')]
    const isEnd = words === '' || next === '' || /[.:;!?]$/.test(words)
    if (isEnd || IS_LAID_OUT.test(words) || IS_LAID_OUT.test(next)) return []
    const [first = ''] = next.split(' ')
    if (line.trimEnd().length + 1 + first.length > FILLED_CHARS) return []
    return [{ line: at + 1, found: words, context: `${words} ${next}`, instead: 'a line that is filled' }]
  })
}

/** Returns the words of a line of a doc comment; an empty text for other lines. */
const wordsOfLine = (line: string): string => /^ *\* (.*)$/.exec(line)?.[1]?.trimEnd() ?? ''

/** The line of a list, a table, a picture or code. */
const IS_LAID_OUT = /^(?:[-|@ ]|\d+[.)] )|[─│▼▶]/

const RULES = PHRASES.map(({ pattern, instead }) => ({
  regex: new RegExp(`(?<![\\w-])(?:${pattern.replaceAll(' ', '\\s+(?:\\*\\s+|//\\s*)?')})(?![\\w-])`, 'gim'),
  instead,
}))

const TEST_NAME_RULES = [
  { regex: /(?<=^ *['"`])(?:also|and|but|nor|or|so do(?:es)?)(?= )/gm, instead: 'a name that needs no other test' },
  {
    regex:
      /(?<=^ *['"`])of (?:an?|each|many|more|one|several|the|two|three|five|ten) [^,'"`]*, (?:at most|both|each|none|only|one|the)(?= )/gm,
    instead: 'the subject first: one of two requests …',
  },
]

/** Finds names of tests that continue another name, or in which the subject comes late; `namesOfTests` returns what to search. */
export function findTestNames(text: string): Finding[] {
  return findAll(text, TEST_NAME_RULES)
}

/** Comments and strings. */
const TEXTS = /\/\*.*?\*\/|\/\/[^\n]*|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/gs

/** Returns every phrase of the list in a text, in the order of the lines. */
export function findPhrases(text: string): Finding[] {
  return findAll(text, RULES)
}

function findAll(text: string, rules: typeof RULES): Finding[] {
  const findings = rules.flatMap(({ regex, instead }) =>
    Array.from(text.matchAll(regex), ({ index, 0: found }) => ({
      line: lineAt(text, index),
      found: onOneLine(found),
      context: onOneLine(text.slice(Math.max(0, index - 40), index + found.length + 40)),
      instead,
    })),
  )
  return findings.toSorted((a, b) => a.line - b.line)
}

/** Returns a Markdown page without code blocks, code and link targets. Line numbers are preserved. */
export function wordsOfMarkdown(text: string): string {
  return text
    .replaceAll(/^```.*?^```/gms, blank)
    .replaceAll(/`[^`\n]+`/g, blank)
    .replaceAll(/\]\([^)\n]*\)/g, blank)
}

/** Words that say too little as a part of a name, with what to name instead. */
const VAGUE_NAMES: readonly Phrase[] = [
  { pattern: '[tT]old', instead: 'what is reported, shown or sent' },
  { pattern: '[dD]eeds?', instead: 'action, operation' },
  { pattern: '[gG]oesOn', instead: 'mayContinue, mustContinue' },
  { pattern: '[hH]earFirst', instead: 'what is checked' },
  { pattern: '[pP]ass_?[oO]ver', instead: 'skip, ignore' },
  { pattern: '[wW]all', instead: 'sandbox' },
  { pattern: '[uU]nderWay', instead: 'active, running' },
  { pattern: '[iI]nTurn', instead: 'enqueue' },
]

const NAME_RULES = VAGUE_NAMES.map(({ pattern, instead }) => ({
  // A word of a name begins with a capital letter, or is the first one.
  regex: new RegExp(`(?:(?<![a-zA-Z])(?=[a-z])|(?=[A-Z]))(?:${pattern})(?![a-z])`, 'g'),
  instead,
}))

/** Finds vague words in the names of a source; `identifiersOf` returns what to search. */
export function findNames(text: string): Finding[] {
  return findAll(text, NAME_RULES)
}

const IRREGULAR =
  'begun|bound|chosen|cut|done|drawn|found|given|gone|held|hidden|hit|kept|known|laid|left|lent|lost|made|met|read|said|seen|sent|shown|spent|taken|written'

/**
 * Participles that say what happened, and not to what: the name of a type, of an export or of a field has a noun. Each case
 * is written out: with a group `(?i:)`, this pattern has missed a name that it finds otherwise.
 */
export const PARTICIPLES = `(?:[A-Z]?[a-z]+ed)|(?:${IRREGULAR.replaceAll(
  /(?<=^|\|)\w/g,
  (first) => `[${first.toUpperCase()}${first}]`,
)})`

/**
 * The participles that say nothing to a reader as the name of a field. Names such as `removed` and `allowed` are terms
 * of the API.
 */
const FIELD_PARTICIPLES = 'asked|found|given|kept|known|left|looked|made|met|noted|said'

/** Names of the API, and terms that are nouns of the field. */
const NOUNS = 'Need|feed'

const BARE_NAMES = [
  `\\b(?:type|class|interface) (?!(?:${NOUNS})\\b)(?<name>${PARTICIPLES})\\b(?! (?!extends|implements)\\w)`,
  `\\bexport (?:async )?(?:function\\*?|const|let) (?!(?:${NOUNS})\\b)(?<name>${PARTICIPLES})\\b`,
  `(?:\\breadonly |^ {2}(?=#))#?(?<name>${FIELD_PARTICIPLES})\\??(?=:| =)`,
].map((pattern) => ({ regex: new RegExp(pattern, 'gm'), instead: 'a noun with it: keptKeys, bytesLeft' }))

/** Finds bare participles as the names of types, exports and fields; `identifiersOf` returns what to search. */
export function findBareNames(text: string): Finding[] {
  return findAll(text, BARE_NAMES)
}

/** Returns the code of a source without its comments and strings, each line where it was. */
export function identifiersOf(text: string): string {
  return text.replaceAll(TEXTS, blank)
}

/** Returns the comments and string literals of a source, found by their syntax alone. Line numbers are preserved. */
export function wordsOfSource(text: string): string {
  const parts = text.matchAll(TEXTS)
  let words = ''
  let end = 0
  for (const { index, 0: part } of parts) {
    words += blank(text.slice(end, index)) + part
    end = index + part.length
  }
  return words
}

/** Returns the names in the calls of `describe` and `test` of a source. Line numbers are preserved. */
export function namesOfTests(text: string): string {
  const calls = text.matchAll(
    /\b(?:describe|test)(?:\.\w+)*(?:\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))?\(\s*(?=(?<name>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`))/g,
  )
  let words = ''
  let end = 0
  for (const { index, 0: call, groups } of calls) {
    const start = index + call.length
    if (start < end) continue
    const name = groups?.['name'] ?? ''
    words += blank(text.slice(end, start)) + name
    end = start + name.length
  }
  return words
}

/** Returns every `description`, `summary` and `title` of a JSON document, one per line. */
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
