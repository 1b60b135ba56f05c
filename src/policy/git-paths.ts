/** Finds the files that a call of git reads or changes: by name, and by what it does with all files that it tracks. */
import type { CommandPath, Depth } from './path-words.ts'
import { HERE, pathsIn } from './path-words.ts'
import { searchOf } from './search-arguments.ts'
import type { Piece, ShellWord } from './shell/shell-word.ts'
import { literalOf, literalWord, startOf, UNKNOWN_WORD } from './shell/shell-word.ts'

const READS: Depth = { reads: true }
const SHOWS: Depth = { ...READS, isTracked: true }
const CHANGES: Depth = { changes: true, isTracked: true }
const MOVES: Depth = { reads: true, changes: true }
/** Returns the directory in which the command runs, and the rest of the repository. */
const everywhere = (depth: Depth): CommandPath => ({ word: HERE, depth: { ...depth, ofRepository: 'all' } })

const CHANGE = new Set(
  `am apply bisect checkout cherry-pick clean merge pull read-tree rebase reset restore revert sparse-checkout stash submodule
  switch`.split(/\s+/),
)
/** They show names, and neither read nor change files of the workdir. */
const NAMES = new Set(
  `branch check-attr check-ignore config count-objects describe fetch for-each-ref fsck gc help init ls-files ls-remote ls-tree
  maintenance merge-base name-rev notes prune push remote rev-list rev-parse shortlog show-ref status symbolic-ref tag var
  version`.split(/\s+/),
)
/** All others may show what is in files, or write it to other files. */
const SILENT = new Set([...NAMES, ...CHANGE, 'add', 'commit', 'hash-object', 'lfs', 'update-index'])

/** The options with which alone a history or a comparison has no content of files. */
const NAMES_ONLY =
  /^(-\d+|-[nSG].*|-[bisqwz]|-[MC]\d*|--(oneline|graph|all|stat(=.*)?|shortstat|numstat|name-only|name-status|summary|dirstat(=.*)?|raw|compact-summary|no-patch|quiet|exit-code|cached|staged|decorate(=\w+)?|no-decorate|format=.*|pretty(=.*)?|author=.*|committer=.*|since=.*|until=.*|after=.*|before=.*|grep=.*|max-count=\d+|skip=\d+|follow|reverse|no-merges|merges|first-parent|date=.*|abbrev-commit|abbrev(=\d+)?|color(=\w+)?|no-color|tags|branches|remotes|topo-order|date-order|left-right|cherry-pick|diff-filter=\w+|no-renames|ignore-all-space|ignore-space-change|no-ext-diff|no-textconv|no-walk|relative-date))$/
const NO_CONTENT =
  /^(-s|--(stat|shortstat|numstat|name-only|name-status|summary|dirstat|raw|compact-summary|no-patch|quiet)(=.*)?)$/
/** Options of commands that show nothing otherwise. */
const LONG_PATCH = /^--(patch|interactive|edit|verbose|[^=]*\0)/
const UNTRACKED = /^(-[^-]*[ua]|--[ai])/
const TEXT = /^(-[a-zA-Z]*[mSG]|--(message|grep|author|format))$/

const TAKE_FILES = new Set(['config', 'maintenance', 'notes', 'rev-list', 'shortlog', 'tag'])
/**
 * The options that take files, `config --blob` and `maintenance --config-file` too: git takes names of options
 * abbreviated.
 */
const TAKES_FILE = /^(-[a-zA-Z]*[fF]|--(fi|o|b|c))/

/** They write what is in objects, which a tag can name, to files of other names. */
const WRITES_OBJECTS: Readonly<Record<string, RegExp>> = {
  fsck: /^--(l|[^=]*\0)|^\0/,
  notes: /^(-[a-zA-Z]*[cC]|--reu)/,
}
const FORMATTED = new Set(['branch', 'for-each-ref', 'tag'])
/** A format with what is in objects. */
const RAW = /%\(\*?(raw|contents)\b(?!:size)|^--f[^\0]*\0/

const EXCHANGES: Readonly<Record<string, Depth>> = { fetch: READS, pull: READS, push: MOVES }
/** Their values are behind them. */
const VALUED =
  /^(-[jo]|--(deepen|depth|exec|filter|jobs|negotiation-tip|push-option|receive-pack|refmap|repo|server-option|shallow-exclude|shallow-since|upload-pack))$/
/** A repository on this machine, wherever it stands; and in the place of the name of a remote one. */
const LOCAL = /^(-.*=)?([./~]|file:)/
const MAY_BE_LOCAL = /^[^:]*[/\0]/

/** `words` are those after the name. */
export function gitPaths(words: readonly ShellWord[]): readonly CommandPath[] {
  const foundCall = readGlobal(words)
  if (!foundCall) return words.every(isPlainOption) ? [] : [{ word: UNKNOWN_WORD }]
  const { directory, subcommand, rest } = foundCall
  const within = (word: ShellWord): ShellWord => {
    const text = literalOf(word)
    return directory === undefined || text === undefined || /^[/~]/.test(text)
      ? word
      : literalWord(`${directory}/${text}`)
  }
  return pathsOfSubcommand(subcommand, rest).map((path) => ({ ...path, word: within(path.word) }))
}

const isPlainOption = (word: ShellWord) => /^--?[a-z][\w-]*$/.test(literalOf(word) ?? '')

type Call = { readonly directory: string | undefined; readonly subcommand: string; readonly rest: readonly ShellWord[] }

/** Undefined where the repository or its files are somewhere else, and without a subcommand. */
function readGlobal(words: readonly ShellWord[]): Call | undefined {
  let directory: string | undefined
  const texts = words.map(literalOf)
  for (let at = 0; ; at += 1) {
    const text = texts[at]
    if (text === undefined) return undefined
    if (!text.startsWith('-')) return { directory, subcommand: text, rest: words.slice(at + 1) }
    if (text === '-C') {
      at += 1
      const givenText = texts[at]
      if (givenText === undefined || directory !== undefined) return undefined
      directory = givenText
    } else if (/^(--git-dir|--work-tree|--namespace|--exec-path|--super-prefix|--bare|--icase)/.test(text))
      return undefined
  }
}

/** What only the shell knows of a word. No command holds it: NUL characters are refused before. */
const HOLE = '\0'

/** A word that may become several ones may be anything. */
const textOf = (word: ShellWord): string =>
  literalOf(word) ?? (word.isMany && word.pieces.some(isAny) ? HOLE : startOf(word) + HOLE)

function pathsOfSubcommand(subcommand: string, rest: readonly ShellWord[]): readonly CommandPath[] {
  const texts = rest.map(textOf)
  const isText = (at: number) => TEXT.test(texts[at - 1] ?? '') && !rest[at]?.isMany
  const markedAt = texts.findIndex((text, at) => text === '--' && !isText(at))
  const end = markedAt < 0 ? rest.length : markedAt
  const isOption = (text: string, at: number) =>
    text === HOLE ? at < end && !isText(at) : text.startsWith('-') && text !== '--'
  const options = texts.filter(isOption)
  const namedPaths = rest
    .filter((_, at) => !isText(at) && !/^-[a-zA-Z]*[mSG]\0/.test(texts[at] ?? ''))
    .flatMap(pathsIn)
    .map((word) => ({ word }))
  if (subcommand === 'grep') return ofGrep(rest, end)
  if (subcommand === 'stash') return ofStash(texts[0], options, namedPaths)
  if (subcommand === 'mv' || subcommand === 'rm') return movedPaths(subcommand, rest)
  if (subcommand === 'init') return namedPaths.map((path) => ({ ...path, depth: MOVES }))
  const remotes = remotePaths(subcommand, rest, texts)
  if (remotes.length > 0) return [...namedPaths, ...remotes]
  const pathsExchanged = exchangedPaths(subcommand, rest, texts)
  if (pathsExchanged.length > 0)
    return [...namedPaths, ...pathsExchanged, everywhere(subcommand === 'pull' ? CHANGES : SHOWS)]
  const showsFile = subcommand === 'show' && !texts.slice(0, end).every(isNoFile)
  const showsObjects = FORMATTED.has(subcommand) && mayShowObjects(subcommand, texts, options)
  const shows = showsContent(subcommand, options) || showsFile || showsObjects
  // `config -f file`, `tag -F file`: they show what is in it, or store it.
  if (!shows && NAMES.has(subcommand)) {
    if (TAKE_FILES.has(subcommand) && options.some((option) => /^[^=]*\0/.test(option))) return [{ word: UNKNOWN_WORD }]
    return options.some((option) => TAKES_FILE.test(option)) ? namedPaths : bareRepositories(subcommand, rest, texts)
  }
  if (subcommand === 'hash-object' && options.some((option) => option.startsWith('--stdin-')))
    return [{ word: UNKNOWN_WORD }]
  if (!shows && (subcommand === 'log' || subcommand === 'diff' || subcommand === 'show')) return []
  const changedPaths = CHANGE.has(subcommand) ? [ofChange(subcommand)] : []
  if (!shows) return [...namedPaths, ...changedPaths]
  // Outside of a repository, and of paths that are not all in one, git compares what is there.
  const isAnywhere = texts.some((text) => /^--no-i|^[/~]|(^|\/)\.\.(\/|$)/.test(text))
  const comparedPaths =
    subcommand === 'diff' && isAnywhere ? namedPaths.map((path) => ({ ...path, depth: READS })) : namedPaths
  return [...comparedPaths, ...changedPaths, ...shownPaths(rest, texts, showsFile ? rest.length : end)]
}

/** Git expands the globs of `mv` and `rm` itself, over directories too, and `:` begins its own syntax. */
function movedPaths(subcommand: string, rest: readonly ShellWord[]): readonly CommandPath[] {
  const starts = rest.map(startOf)
  const takesDirectories = subcommand === 'mv' || starts.some((start) => /^-\w*r/.test(start))
  if (starts.some((start) => /^(:|--paths)/.test(start))) return [{ word: UNKNOWN_WORD }]
  return rest.flatMap((word) => {
    const foundPath = foundByGlob(word, takesDirectories)
    return foundPath ? [foundPath] : pathsIn(word).map((each) => ({ word: each, depth: MOVES }))
  })
}

/** The directory before the glob, with all files below it whose names end as the glob does. Undefined: it has none. */
function foundByGlob(word: ShellWord, takesDirectories: boolean): CommandPath | undefined {
  const text = word.pieces.map((piece) => ('text' in piece ? piece.text : '*')).join('')
  if (text.startsWith('-') || !/[*?[\\]/.test(text) || word.pieces.some(isAny)) return undefined
  const directory = /^[^*?[\\]*\//.exec(text)?.[0]
  const [, end = ''] = /[*?\]\\]([^*?[\]\\/]*)$/.exec(text) ?? []
  const depth = takesDirectories ? MOVES : { ...MOVES, includes: [`*${end}`] }
  return { word: directory === undefined ? HERE : { ...literalWord(directory), hasTilde: word.hasTilde }, depth }
}

const isAny = (piece: Piece) => 'hole' in piece && piece.hole === 'any'

/** A format may be behind its option. What is deleted has none, so `branch -D $x` has none. */
function mayShowObjects(subcommand: string, texts: readonly string[], options: readonly string[]): boolean {
  const isUnknown = (text: string, at: number) => text.includes(HOLE) && /^--f[^=]*$/.test(texts[at - 1] ?? '')
  if (texts.some((text, at) => RAW.test(text) || isUnknown(text, at))) return true
  return subcommand === 'for-each-ref' && options.some((option) => /^[^=]*\0/.test(option))
}

/** The local repositories that are read, and changed by a push. Names of remote ones are not looked up. */
function exchangedPaths(
  subcommand: string,
  rest: readonly ShellWord[],
  texts: readonly string[],
): readonly CommandPath[] {
  const depth = Object.hasOwn(EXCHANGES, subcommand) ? EXCHANGES[subcommand] : undefined
  if (!depth) return []
  const first = firstOperand(texts)
  const isLocal = (text: string, at: number) => LOCAL.test(text) || (at === first && MAY_BE_LOCAL.test(text))
  return rest
    .filter((_, at) => isLocal(texts[at] ?? '', at))
    .flatMap(pathsIn)
    .map((word) => ({ word, depth }))
}

/** `git fetch other` reads a directory or a link of this name, unless a remote has it: then no rule is about such a file. */
function bareRepositories(
  subcommand: string,
  rest: readonly ShellWord[],
  texts: readonly string[],
): readonly CommandPath[] {
  if (!Object.hasOwn(EXCHANGES, subcommand) && subcommand !== 'ls-remote') return []
  const first = firstOperand(texts)
  const isMany = texts.some((text) => /^(-[a-zA-Z]*m|--mu)/.test(text))
  const isNamed = (text: string, at: number) => (isMany ? !text.startsWith('-') : at === first) && !/[:/\0]/.test(text)
  return rest.filter((_, at) => isNamed(texts[at] ?? '', at)).map((word) => ({ word }))
}

const firstOperand = (texts: readonly string[]): number =>
  texts.findIndex((text, at) => !text.startsWith('-') && !VALUED.test(texts[at - 1] ?? ''))

/** The name of a setting that says where a repository is, or which files git reads as its own. */
const PLACE =
  /^(remote\..*\.(push)?url|url\..*\.(push)?insteadof|submodule\..*\.url|include(if)?\..*path|core\.worktree|[a-z]+\.[a-z]*(template|file))$/is

/** The local repositories that are named for a later command, and by `ls-remote`: what is named now is fetched by its name. */
function remotePaths(subcommand: string, rest: readonly ShellWord[], texts: readonly string[]): readonly CommandPath[] {
  const isNaming =
    subcommand === 'ls-remote' ||
    (subcommand === 'remote' && texts.some((text) => text === 'add' || text === 'set-url' || text.includes(HOLE))) ||
    (subcommand === 'config' && texts.some((text) => PLACE.test(text) || /^[^=]*\0/.test(text)))
  if (!isNaming) return []
  const bases = texts.flatMap((text) => /^url\.(.*)\.(?:push)?insteadof$/is.exec(text)?.[1] ?? [])
  const words = rest.filter((_, at) => LOCAL.test(texts[at] ?? '') || MAY_BE_LOCAL.test(texts[at] ?? ''))
  return [...words, ...bases.map(literalWord)].flatMap(pathsIn).map((word) => ({ word, depth: READS }))
}

const ofChange = (subcommand: string): CommandPath =>
  subcommand === 'clean' ? { word: HERE, depth: { changes: true } } : everywhere(CHANGES)

function showsContent(subcommand: string, options: readonly string[]): boolean {
  const writes = Object.hasOwn(WRITES_OBJECTS, subcommand) ? WRITES_OBJECTS[subcommand] : undefined
  if (writes && options.some((option) => writes.test(option))) return true
  const mayShow = !options.every((option) => NAMES_ONLY.test(option))
  if (subcommand === 'log' || subcommand === 'reflog') return mayShow
  if (subcommand === 'diff' || subcommand === 'show')
    return mayShow || !options.some((option) => NO_CONTENT.test(option))
  if (subcommand === 'cat-file') return !options.some((option) => /^-[tse]$/.test(option))
  if (!SILENT.has(subcommand)) return true
  return (
    ['add', 'commit', 'status', 'checkout', 'restore', 'reset'].includes(subcommand) &&
    options.some(isPatch(subcommand))
  )
}

/** `show` prints a file that is named as `HEAD:file` or by its hash, whatever its options are. */
const isNoFile = (text: string): boolean => text.startsWith('-') || /^(HEAD|@)([~^][~^\d]*)?$/.test(text)

/** `commit -m` has a text behind it, and not letters. */
function isPatch(subcommand: string): (option: string) => boolean {
  const letters = `${HOLE}${subcommand === 'commit' ? 'pv' : subcommand === 'status' ? 'v' : 'pie'}`
  return (option) => {
    if (option.startsWith('--')) return LONG_PATCH.test(option) && (subcommand !== 'commit' || option !== '--edit')
    return Array.from(option.replace(/m.*/s, '')).some((letter) => letters.includes(letter))
  }
}

/** The files behind `--`, or all; `HEAD:file` is that file only, which is named from the top of the repository. */
function shownPaths(rest: readonly ShellWord[], texts: readonly string[], end: number): readonly CommandPath[] {
  const narrow = narrowPaths(rest, end)
  if (narrow) return narrow.map((word) => ({ word, depth: SHOWS }))
  const operands = texts.filter((text) => !text.startsWith('-'))
  const isFile = (text: string) => /^(?!:\/)[^:]*:./.test(text)
  const areFiles = end === rest.length && operands.length > 0 && operands.every(isFile)
  return areFiles ? [{ word: HERE, depth: { ...SHOWS, ofRepository: 'outside' } }] : [everywhere(SHOWS)]
}

/** Returns what is behind `--`; undefined without it, and where git itself takes a path for a pattern. */
function narrowPaths(rest: readonly ShellWord[], end: number): readonly ShellWord[] | undefined {
  const paths = rest.slice(end + 1)
  return paths.length > 0 && paths.every((word) => /^[^:]/.test(startOf(word))) ? paths : undefined
}

/**
 * Returns the paths of `git grep`, which may search other files than those that git tracks if an option is not known.
 * `:/` is the top of the repository.
 */
function ofGrep(rest: readonly ShellWord[], end: number): readonly CommandPath[] {
  const search = searchOf('git-grep', rest.slice(0, end))
  const depth = search ? SHOWS : READS
  const paths = [...(search?.paths ?? rest), ...rest.slice(end + 1)]
  const namedPaths = paths.flatMap(pathsIn).map((word) => ({ word, depth }))
  if (narrowPaths(rest, end)) return namedPaths
  return [...namedPaths, rest.some((word) => startOf(word).startsWith(':')) ? everywhere(depth) : { word: HERE, depth }]
}

function ofStash(
  action: string | undefined,
  options: readonly string[],
  namedPaths: readonly CommandPath[],
): readonly CommandPath[] {
  if (options.some((option) => UNTRACKED.test(option))) return [...namedPaths, everywhere(MOVES)]
  if (action === 'show' || action === 'list')
    return showsContent('log', options) ? [...namedPaths, everywhere(SHOWS)] : []
  const depth = options.some(isPatch('stash')) ? { ...SHOWS, ...CHANGES } : CHANGES
  return [...namedPaths, everywhere(depth)]
}
