/** Which files a call of git reads or changes: by name, and by what it does with all files that it tracks. */
import type { CommandPath, Depth } from './path-words.ts'
import { pathsIn } from './path-words.ts'
import { searchOf } from './search-arguments.ts'
import type { Piece, ShellWord } from './shell/shell-word.ts'
import { literalOf, literalWord, startOf, UNKNOWN_WORD } from './shell/shell-word.ts'

const SHOWS: Depth = { reads: true, changes: false, isTracked: true }
const READS: Depth = { reads: true, changes: false }
const CHANGES: Depth = { reads: false, changes: true, isTracked: true }
const MOVES: Depth = { reads: true, changes: true }

/** They show what is in files, or write it to other files. */
const SHOW = new Set(
  `annotate archive blame bundle cat-file checkout-index clone diff diff-files diff-index diff-tree difftool fast-export
  format-patch log range-diff reflog show stash unpack-file whatchanged worktree`.split(/\s+/),
)
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
const SILENT = new Set([...NAMES, ...CHANGE, 'add', 'commit', 'hash-object', 'lfs', 'update-index'])

/** With only these, a history or a comparison has no content of files. */
const NAMES_ONLY =
  /^(-\d+|-[nSG].*|-[bisqwz]|-[MC]\d*|--(oneline|graph|all|stat(=.*)?|shortstat|numstat|name-only|name-status|summary|dirstat(=.*)?|raw|compact-summary|no-patch|quiet|exit-code|cached|staged|decorate(=\w+)?|no-decorate|format=.*|pretty(=.*)?|author=.*|committer=.*|since=.*|until=.*|after=.*|before=.*|grep=.*|max-count=\d+|skip=\d+|follow|reverse|no-merges|merges|first-parent|date=.*|abbrev-commit|abbrev(=\d+)?|color(=\w+)?|no-color|tags|branches|remotes|topo-order|date-order|left-right|cherry-pick|diff-filter=\w+|no-renames|ignore-all-space|ignore-space-change|no-ext-diff|no-textconv|no-walk|relative-date))$/
const NO_CONTENT =
  /^(-s|-q|--(stat|shortstat|numstat|name-only|name-status|summary|dirstat|raw|compact-summary|no-patch|quiet)(=.*)?)$/
/** Options of commands that show nothing otherwise. */
const LONG_PATCH = /^--(patch|interactive|edit|verbose)/
const UNTRACKED = /^(-[^-]*[ua]|--(i|a|untracked|no-index))/
const TEXT = /^(-[a-zA-Z]*[mSG]|--(message|grep|author|format))$/

const TAKES_FILE = /^(-[a-zA-Z]*[fF]|--fi)/

/** `words` are those after the name. */
export function gitPaths(words: readonly ShellWord[]): readonly CommandPath[] {
  const found = readGlobal(words)
  const subcommand = found && found.at < words.length ? literalOf(words[found.at] ?? UNKNOWN_WORD) : undefined
  const everywhere = { word: UNKNOWN_WORD, depth: MOVES }
  if (!found || subcommand === undefined) return words.every(isPlainOption) ? [] : [everywhere]
  const rest = words.slice(found.at + 1)
  const { directory } = found
  const within = (word: ShellWord): ShellWord => {
    const text = literalOf(word)
    return directory === undefined || text === undefined || /^[/~]/.test(text)
      ? word
      : literalWord(`${directory}/${text}`)
  }
  return pathsOfSubcommand(subcommand, rest).map((path) => ({ ...path, word: within(path.word) }))
}

const isPlainOption = (word: ShellWord) => /^--?[a-z][\w-]*$/.test(literalOf(word) ?? '')

/** Undefined where the repository or its files are somewhere else. */
function readGlobal(words: readonly ShellWord[]): { readonly at: number; readonly directory?: string } | undefined {
  let directory: string | undefined
  for (let at = 0; at < words.length; at += 1) {
    const text = literalOf(words[at] ?? UNKNOWN_WORD)
    if (text === undefined) return undefined
    if (!text.startsWith('-')) return { at, ...(directory !== undefined && { directory }) }
    if (text === '-C') {
      at += 1
      const given = literalOf(words[at] ?? UNKNOWN_WORD)
      if (given === undefined || directory !== undefined) return undefined
      directory = given
    } else if (text === '-c') at += 1
    else if (/^(--git-dir|--work-tree|--namespace|--exec-path|--super-prefix|--bare|--icase)/.test(text))
      return undefined
  }
  return undefined
}

function pathsOfSubcommand(subcommand: string, rest: readonly ShellWord[]): readonly CommandPath[] {
  const texts = rest.map((word) => literalOf(word) ?? startOf(word))
  const options = texts.filter((text) => text.startsWith('-') && text !== '--')
  const named = rest
    .filter((_, at) => !TEXT.test(texts[at - 1] ?? ''))
    .flatMap(pathsIn)
    .map((word) => ({ word }))
  if (subcommand === 'grep') return ofGrep(rest, options)
  if (subcommand === 'stash') return ofStash(texts, options, named)
  if (subcommand === 'mv' || subcommand === 'rm') return movedPaths(subcommand, rest)
  const shows = showsContent(subcommand, options)
  // `config -f file`, `tag -F file`: they show what is in it, or store it.
  if (!shows && NAMES.has(subcommand)) return options.some((option) => TAKES_FILE.test(option)) ? named : []
  if (subcommand === 'hash-object' && options.some((option) => option.startsWith('--stdin-')))
    return [{ word: UNKNOWN_WORD }]
  if (!shows && (subcommand === 'log' || subcommand === 'diff' || subcommand === 'show')) return []
  const changed = CHANGE.has(subcommand) ? [{ word: literalWord('.'), depth: ofChange(subcommand) }] : []
  if (!shows) return [...named, ...changed]
  // Outside of a repository, and of paths that are not all in one, git compares what is there.
  const isAnywhere = texts.some((text) => /^--no-i|^[/~]|(^|\/)\.\.(\/|$)/.test(text))
  const compared = subcommand === 'diff' && isAnywhere ? named.map((path) => ({ ...path, depth: READS })) : named
  return [...compared, ...changed, ...shownPaths(rest, texts)]
}

/** Git expands the globs of `mv` and `rm` itself, over directories too, and `:` begins its own syntax. */
function movedPaths(subcommand: string, rest: readonly ShellWord[]): readonly CommandPath[] {
  const starts = rest.map(startOf)
  const takesDirectories = subcommand === 'mv' || starts.some((start) => /^-\w*r/.test(start))
  if (starts.some((start) => start.startsWith(':') || start.startsWith('--paths')))
    return [{ word: UNKNOWN_WORD, depth: MOVES }]
  return rest.flatMap((word) => {
    const found = foundByGlob(word, takesDirectories)
    return found ? [found] : pathsIn(word).map((each) => ({ word: each, depth: MOVES }))
  })
}

/** The directory before the glob, with all files below it whose names end as the glob does. Undefined: it has none. */
function foundByGlob(word: ShellWord, takesDirectories: boolean): CommandPath | undefined {
  const start = startOf(word)
  const known = start.split(GLOB, 1)[0] ?? ''
  if (start.startsWith('-') || known === literalOf(word) || word.pieces.some(isAny)) return undefined
  const directory = known.slice(0, known.lastIndexOf('/') + 1)
  const last = word.pieces.at(-1)
  const end = last && 'text' in last ? (/^(?:.*[*?\]\\])?([^*?[\]\\/]*)$/s.exec(last.text)?.[1] ?? '') : ''
  const depth = takesDirectories || end === '' ? MOVES : { ...MOVES, includes: [`*${end}`] }
  return { word: { ...literalWord(directory === '' ? '.' : directory), hasTilde: word.hasTilde }, depth }
}

const isAny = (piece: Piece) => 'hole' in piece && piece.hole === 'any'
const GLOB = /[*?[\\]/

const ofChange = (subcommand: string): Depth => (subcommand === 'clean' ? { reads: false, changes: true } : CHANGES)

function showsContent(subcommand: string, options: readonly string[]): boolean {
  if (subcommand === 'log' || subcommand === 'reflog') return !options.every((option) => NAMES_ONLY.test(option))
  if (subcommand === 'diff' || subcommand === 'show')
    return !options.some((option) => NO_CONTENT.test(option)) || !options.every((option) => NAMES_ONLY.test(option))
  if (subcommand === 'cat-file') return !options.some((option) => /^-[tse]$/.test(option))
  if (subcommand === 'worktree') return true
  if (SHOW.has(subcommand)) return true
  if (!SILENT.has(subcommand)) return true
  return (
    ['add', 'commit', 'status', 'checkout', 'restore', 'reset'].includes(subcommand) &&
    options.some(isPatch(subcommand))
  )
}

/** `commit -m` has a text behind it, and not letters. */
function isPatch(subcommand: string): (option: string) => boolean {
  const letters = subcommand === 'commit' ? 'pv' : subcommand === 'status' ? 'v' : 'pie'
  return (option) => {
    if (option.startsWith('--')) return LONG_PATCH.test(option) && (subcommand !== 'commit' || option !== '--edit')
    const short = option.slice(1).split('m', 1)[0] ?? ''
    return Array.from(short).some((letter) => letters.includes(letter))
  }
}

/** The files behind `--`, or all; `HEAD:file` is that file only. */
function shownPaths(rest: readonly ShellWord[], texts: readonly string[]): readonly CommandPath[] {
  const end = texts.indexOf('--')
  const paths = end < 0 ? [] : rest.slice(end + 1)
  if (paths.length > 0 && paths.every((word) => /^[^:]/.test(startOf(word))))
    return paths.map((word) => ({ word, depth: SHOWS }))
  const operands = texts.filter((text) => !text.startsWith('-'))
  const isFile = (text: string) => /^(?!:\/)[^:]*:./.test(text)
  if (end < 0 && operands.length > 0 && operands.every(isFile)) return []
  return [{ word: literalWord('.'), depth: SHOWS }]
}

function ofGrep(rest: readonly ShellWord[], options: readonly string[]): readonly CommandPath[] {
  const { isTracked: _, ...untracked } = SHOWS
  const depth = options.some((option) => /^--(untracked|no-index)/.test(option)) ? untracked : SHOWS
  const end = rest.findIndex((word) => literalOf(word) === '--')
  const paths = end < 0 ? [] : rest.slice(end + 1)
  const isNarrow = paths.length > 0 && paths.every((word) => /^[^:]/.test(startOf(word)))
  const search = searchOf('git-grep', end < 0 ? rest : rest.slice(0, end))
  const others = search ? search.paths : rest
  const named = [...others, ...paths].flatMap(pathsIn).map((word) => ({ word, depth }))
  return isNarrow ? named : [...named, { word: literalWord('.'), depth }]
}

function ofStash(
  texts: readonly string[],
  options: readonly string[],
  named: readonly CommandPath[],
): readonly CommandPath[] {
  const word = literalWord('.')
  const [action] = texts
  const isShow = action === 'show' || action === 'list'
  if (isShow)
    return options.every((option) => NAMES_ONLY.test(option)) ? [] : [{ word, depth: { ...MOVES, isTracked: true } }]
  if (options.some((option) => UNTRACKED.test(option))) return [...named, { word, depth: MOVES }]
  const isPatched = options.some(isPatch('stash'))
  return [...named, { word, depth: isPatched ? { ...MOVES, isTracked: true } : CHANGES }]
}
