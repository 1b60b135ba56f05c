/** What a search reads: its paths, and whether it looks into directories and hidden files. */
import type { ShellWord } from './shell/shell-word.ts'
import { literalOf, literalWord, startOf } from './shell/shell-word.ts'

export type Search = {
  readonly paths: readonly ShellWord[]
  readonly isRecursive: boolean
  readonly followsLinks: boolean
  /** It leaves out files and directories whose names begin with a dot. */
  readonly skipsHidden: boolean
  /** It only reads files whose names match one of these; undefined: all. */
  readonly includes: readonly string[] | undefined
}

type Syntax = {
  /** Letters of options with a value. */
  readonly valued: string
  /** Long options without a value. */
  readonly flags: RegExp
  /** Long options with a value, as the next word. */
  readonly longValued: RegExp
}

const GREP: Syntax = {
  valued: 'ABCmefdD',
  flags:
    /^--(extended-regexp|fixed-strings|basic-regexp|perl-regexp|ignore-case|no-ignore-case|invert-match|word-regexp|line-regexp|count|files-with(out)?-match(es)?|only-matching|quiet|silent|no-messages|byte-offset|with-filename|no-filename|line-number|initial-tab|null|null-data|text|recursive|dereference-recursive|colou?r|line-buffered|cached|name-only|full-name|heading|break|show-function|function-context|all-match|and|or|not)$/,
  longValued:
    /^--(regexp|file|max-count|after-context|before-context|context|include|exclude|exclude-dir|exclude-from|label|binary-files|max-depth|threads)$/,
}
const RG: Syntax = {
  valued: 'ABCEMTdefgjmrt',
  flags:
    /^--(ignore-case|smart-case|case-sensitive|fixed-strings|word-regexp|line-regexp|line-number|no-line-number|column|no-column|heading|no-heading|count|count-matches|files|files-with-matches|files-without-match|only-matching|invert-match|multiline|multiline-dotall|hidden|no-hidden|no-ignore(-\w+)?|follow|stats|json|pretty|trim|vimgrep|null|quiet|text|pcre2|no-messages|with-filename|no-filename|passthru|sort-files|type-list|unrestricted|crlf|byte-offset|one-file-system|search-zip|no-config|line-buffered|no-unicode|include-zero|max-columns-preview)$/,
  longValued:
    /^--(regexp|file|max-count|after-context|before-context|context|glob|iglob|type|type-not|max-depth|maxdepth|max-columns|max-filesize|replace|sort|sortr|colou?r|colors|threads|encoding|context-separator|engine)$/,
}
const SYNTAX: Readonly<Record<string, Syntax | undefined>> = {
  grep: GREP,
  egrep: GREP,
  fgrep: GREP,
  'git-grep': GREP,
  rg: RG,
}

/** Types of files without any that are hidden. */
const TYPES =
  /^(c|cpp|css|csharp|go|html|java|js|json|kotlin|md|markdown|php|py|python|rust|sql|swift|toml|ts|typescript|txt|xml|yaml)$/

/** Undefined for another program, and where an option is not known. `words` are those after the name. */
export function searchOf(name: string, words: readonly ShellWord[]): Search | undefined {
  const syntax = SYNTAX[name]
  const givenOptions = syntax && readOptions(syntax, words)
  if (!givenOptions) return undefined
  const { options, operands } = givenOptions
  const has = (...names: string[]) => options.some(([option]) => names.includes(option))
  const patternIsGiven = has('-e', '--regexp', '-f', '--file') || (name === 'rg' && has('--files', '--type-list'))
  const files = options.flatMap(([option, value]) => (['-f', '--file'].includes(option) && value ? [value] : []))
  const paths = [...operands.slice(patternIsGiven ? 0 : 1), ...files]
  const isRecursive = name === 'rg' || has('-r', '-R', '-d', '--recursive', '--dereference-recursive')
  const followsLinks = name === 'rg' ? has('-L', '--follow') : has('-R', '--dereference-recursive')
  return {
    paths,
    isRecursive,
    followsLinks,
    skipsHidden: name === 'rg' && skipsHidden(options),
    includes: includesOf(options),
  }
}

type Option = readonly [name: string, value: ShellWord | undefined]

function skipsHidden(options: readonly Option[]): boolean {
  const unrestrictedCount = options.filter(([option]) => option === '-u' || option === '--unrestricted').length
  return (
    unrestrictedCount < 2 &&
    options.every(([option, value]) => {
      if (option === '-.' || option === '--hidden') return false
      if (option === '-t' || option === '--type') return TYPES.test((value && literalOf(value)) ?? '')
      // A glob also includes hidden files that it names.
      return !['-g', '--glob', '--iglob'].includes(option) || (value ? startOf(value).startsWith('!') : false)
    })
  )
}

/** `--iglob` is compared without case, which is not done here. */
function includesOf(options: readonly Option[]): readonly string[] | undefined {
  const givenOptions = options.filter(
    ([option, value]) =>
      ['--include', '-g', '--glob', '--iglob'].includes(option) && !(value && startOf(value).startsWith('!')),
  )
  const knownValues = givenOptions.flatMap(([option, value]) => {
    const text = value && literalOf(value)
    return option === '--iglob' || text === undefined || /[[{\\]/.test(text) ? [] : [text]
  })
  if (givenOptions.length === 0 || knownValues.length < givenOptions.length) return undefined
  return knownValues.map((text) => text.slice(text.lastIndexOf('/') + 1))
}

/** Undefined if one is not known: then it is not certain which words are paths. */
function readOptions(
  { valued, flags, longValued }: Syntax,
  words: readonly ShellWord[],
): { readonly options: readonly Option[]; readonly operands: readonly ShellWord[] } | undefined {
  const options: Option[] = []
  const operands: ShellWord[] = []
  for (let at = 0; at < words.length; at += 1) {
    // oxlint-disable-next-line typescript/no-non-null-assertion -- within the list
    const word = words[at]!
    const start = startOf(word)
    if (start === '' && literalOf(word) === undefined) return undefined
    if (start === '--' && literalOf(word) !== undefined)
      return { options, operands: [...operands, ...words.slice(at + 1)] }
    if (!start.startsWith('-') || start === '-') operands.push(word)
    else {
      const text = literalOf(word)
      if (text === undefined) return undefined
      const oneRead = text.startsWith('--') ? readLong(text, { flags, longValued }) : readShort(text, valued)
      if (!oneRead) return undefined
      options.push(...oneRead.options)
      if (!oneRead.takesNext) continue
      at += 1
      options.push([oneRead.takesNext, words[at]])
    }
  }
  return { options, operands }
}

type OneRead = { readonly options: readonly Option[]; readonly takesNext?: string }

function readLong(text: string, { flags, longValued }: Pick<Syntax, 'flags' | 'longValued'>): OneRead | undefined {
  const equals = text.indexOf('=')
  const name = equals < 0 ? text : text.slice(0, equals)
  if (flags.test(name)) return { options: [[name, undefined]] }
  if (!longValued.test(name)) return undefined
  return equals < 0 ? { options: [], takesNext: name } : { options: [[name, literalWord(text.slice(equals + 1))]] }
}

function readShort(text: string, valuedOptions: string): OneRead {
  const options: Option[] = []
  for (let at = 1; at < text.length; at += 1) {
    const letter = text.charAt(at)
    if (!valuedOptions.includes(letter)) options.push([`-${letter}`, undefined])
    else if (at + 1 === text.length) return { options, takesNext: `-${letter}` }
    else return { options: [...options, [`-${letter}`, literalWord(text.slice(at + 1))]] }
  }
  return { options }
}
