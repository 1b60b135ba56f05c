/** The only file that says which commands only read. What is not listed here may change something. */
import type { ShellWord } from './shell-word.ts'
import { literalOf, startOf } from './shell-word.ts'
import { isReadingGit } from './read-only-git.ts'

/** What a command that only reads may read. */
export type Reading = {
  readonly paths: readonly ShellWord[]
  /** It also reads where it runs, as `ls` does. */
  readonly readsDirectory: boolean
  /**
   * It is free for git in its own directory alone: in another one, a configuration that comes with the files can run
   * commands.
   */
  readonly isGit?: true
  /** It reads what links in a directory lead to. */
  readonly followsLinks?: boolean
}

type Spec = {
  /** Options that it may have; the others may write, run something or name a file. */
  readonly options: RegExp
  /** Its arguments are texts, not paths. */
  readonly takesText?: true
  /** A glob among its arguments shows names and sizes of files, not their content. */
  readonly takesGlobs?: true
  readonly maxOperands?: number
  /** It reads where it runs if it has no path. */
  readonly walks?: true
  /** What is in a directory is compared, wherever its links lead. */
  readonly followsLinks?: true
  /** `@file` stands for the arguments in that file, which may name any other file. */
  readonly takesArgumentFiles?: true
}

const NONE = /(?!)/
const ANY_SHORT = /^-[A-Za-z0-9]+$/
const COUNT = /^(-\d+|-[nc][+-]?\d*|--(lines|bytes)(=[+-]?\d+)?|-q|-v|--quiet|--verbose)$/
const SUM = /^(-b|-t|--binary|--text|--tag)$/
const GREP =
  /^(-[EFGPivwxcLloqshHnTZzrabU]+|-[ABCm]\d*|-e|--(include|exclude|exclude-dir)=[^/]*|--colou?r(=\w+)?|--(extended-regexp|fixed-strings|perl-regexp|ignore-case|invert-match|word-regexp|line-regexp|count|files-with-matches|files-without-match|only-matching|quiet|no-messages|with-filename|no-filename|line-number|recursive|(after|before)-context=\d+|context=\d+|max-count=\d+))$/
const RG =
  /^(-[iSsvwxclnNHIoqFPuUhp.]+|-[ABCmtTgdM]\d*|-e|--(files|hidden|no-ignore|ignore-case|smart-case|fixed-strings|word-regexp|line-number|no-heading|heading|count|count-matches|files-with-matches|files-without-match|only-matching|multiline|stats|json|type-list|sort=\w+|type=\w+|type-not=\w+|glob=[^/]*|max-depth=\d+|max-count=\d+|color=\w+|(after-|before-)?context=\d+))$/
const FIND =
  /^(-P|-name|-iname|-path|-ipath|-type|-maxdepth|-mindepth|-size|-mtime|-mmin|-ctime|-atime|-empty|-not|-o|-a|-and|-or|-print|-print0|-prune|-regex|-iregex|-perm|-user|-group|-ls|-depth|-xdev|-mount|-quit|-true|-false)$/

const SPECS: Readonly<Record<string, Spec>> = {
  ':': { options: NONE, takesText: true },
  basename: { options: /^(-a|-z|-s)$/, takesText: true },
  cat: { options: /^(-[AbeEnstTuv]+|--number|--show-all)$/ },
  cksum: { options: NONE },
  cmp: { options: /^-[bls]+$/ },
  comm: { options: /^-[123]+$/ },
  cut: { options: /^(-[bcdf].*|-s|--(delimiter|fields|characters|complement|output-delimiter)(=.*)?)$/ },
  date: { options: /^(-u|-R|-I\w*|--utc|--rfc-3339=\w+|--iso-8601(=\w+)?)$/, takesText: true },
  df: { options: /^(-[hHTaikl]+)$/ },
  diff: {
    followsLinks: true,
    options:
      /^(-[abBcdeinNpqrstuwyE]+|-[UC]\d*|--(brief|unified|side-by-side|recursive|colou?r(=\w+)?|ignore-all-space))$/,
  },
  dirname: { options: /^-z$/, takesText: true },
  du: {
    options: /^(-[abchklmsSx]+|-d\d*|--(max-depth=\d+|human-readable|summarize|apparent-size))$/,
    takesGlobs: true,
    walks: true,
  },
  echo: { options: /^/, takesText: true },
  egrep: { options: GREP, walks: true },
  expand: { options: /^-[it0-9]+$/ },
  false: { options: NONE, takesText: true },
  fgrep: { options: GREP, walks: true },
  file: { options: /^-[bhikLr]+$/ },
  find: { options: FIND, walks: true },
  fold: { options: /^-[bsw0-9]+$/ },
  grep: { options: GREP, walks: true },
  head: { options: COUNT },
  id: { options: /^-[unGgrz]+$/, takesText: true },
  join: { options: /^-[12aijtv].*$/ },
  ls: {
    options:
      // `-L` lists what links lead to.
      /^(-[A-KM-Za-z0-9]+|--(all|almost-all|human-readable|recursive|reverse|size|sort=\w+|time=\w+|colou?r(=\w+)?|group-directories-first|full-time|directory|classify|inode|si))$/,
    takesGlobs: true,
    walks: true,
  },
  md5sum: { options: SUM },
  nl: { options: /^-[a-z][a-z0-9]*$/ },
  nproc: { options: /^--(all|ignore=\d+)$/, maxOperands: 0 },
  od: { options: /^-[AtNjvwcxobd][a-z0-9]*$/ },
  paste: { options: /^-[sdz].*$/ },
  printf: { options: NONE, takesText: true },
  pwd: { options: /^-[LP]$/, maxOperands: 0 },
  readlink: { options: /^-[femnqsvz]+$/ },
  realpath: { options: /^-[emsqz]+$/ },
  rev: { options: NONE },
  rg: { options: RG, walks: true },
  seq: { options: /^(-w|-s.*|-\d+)$/, takesText: true },
  sha1sum: { options: SUM },
  sha256sum: { options: SUM },
  sha512sum: { options: SUM },
  sleep: { options: NONE, takesText: true },
  sort: { options: /^(-[bdfghinrRsuVzM]+|-[kt].*|--(reverse|unique|numeric-sort|version-sort|human-numeric-sort))$/ },
  stat: { options: /^(-[Lft]+|-c|--(format|printf)=.*)$/, takesGlobs: true },
  strings: { options: /^(-[a0-9]+|-n\d*)$/, takesArgumentFiles: true },
  tac: { options: NONE },
  tail: { options: COUNT },
  tr: { options: /^-[cCdst]+$/, takesText: true },
  tree: { options: /^(-[adfhpsugDFrtCNQ]+|-L\d*|-I|-P|--(dirsfirst|noreport|gitignore|du|si))$/, walks: true },
  true: { options: NONE, takesText: true },
  type: { options: /^-[aftpP]+$/, takesText: true },
  uname: { options: ANY_SHORT, maxOperands: 0 },
  uniq: { options: /^(-[cdDiuz]+|-[fsw]\d*|--(count|repeated|unique|ignore-case))$/, maxOperands: 1 },
  wc: { options: /^(-[clLmw]+|--(lines|words|bytes|chars))$/, takesGlobs: true },
  which: { options: /^-a$/, takesText: true },
  whoami: { options: NONE, maxOperands: 0 },
}

/** Undefined unless the command is certain to change nothing and to run nothing. */
export function readingOf(words: readonly ShellWord[]): Reading | undefined {
  const [first, ...rest] = words
  const name = first && literalOf(first)
  if (name === undefined) return undefined
  if (name === 'git')
    return isReadingGit(rest) ? { paths: operandsOf(rest).slice(1), readsDirectory: true, isGit: true } : undefined
  if (name === 'cd')
    return rest.every(isKnown)
      ? { paths: rest.filter((word) => !/^-[PL]$/.test(startOf(word))), readsDirectory: false }
      : undefined
  if (name === 'sed') return readingSed(rest)
  if (name === 'command' && /^-[vV]$/.test((rest[0] && literalOf(rest[0])) ?? ''))
    return { paths: [], readsDirectory: false }
  if (name === 'test' || name === '[') return readingTest(rest)
  const spec = Object.hasOwn(SPECS, name) ? SPECS[name] : undefined
  return spec && readingBy(spec, name, rest)
}

function readingBy(spec: Spec, name: string, words: readonly ShellWord[]): Reading | undefined {
  if (name === 'echo') return { paths: [], readsDirectory: false }
  if (!words.every((word) => isPlain(word, spec))) return undefined
  const options = words.filter(isOption)
  if (!options.every((word) => isKnown(word) && (literalOf(word) === '--' || spec.options.test(startOf(word)))))
    return undefined
  const operands = words.filter((word) => !isOption(word))
  if (operands.length > (spec.maxOperands ?? Infinity)) return undefined
  if (spec.takesArgumentFiles && operands.some((word) => startOf(word).startsWith('@'))) return undefined
  // `date 01020304` and `date -s` set the clock.
  if (name === 'date' && !operands.every((word) => startOf(word).startsWith('+'))) return undefined
  return spec.takesText
    ? { paths: [], readsDirectory: false }
    : { paths: operands, readsDirectory: spec.walks ?? false, followsLinks: spec.followsLinks ?? false }
}

/**
 * Returns true for words behind `--`, too: `find -- -delete` deletes, and in `rg -e -- --pre=./x` the `--` is the value
 * of an option. So a file whose name begins with `-` is a question.
 */
const isOption = (word: ShellWord): boolean => startOf(word).startsWith('-') && startOf(word) !== '-'

/** What an unknown word stands for may begin with `-`, so it may be an option. */
function isPlain(word: ShellWord, { takesText, takesGlobs }: Spec): boolean {
  if (isKnown(word)) return true
  // What may become several words is not plain: `x='%s -f file'; date +$x` shows a file.
  if (word.pieces.some((piece) => 'hole' in piece && piece.hole === 'any'))
    return Boolean(takesText) && isSafeText(word) && !word.isMany
  return Boolean(takesGlobs ?? takesText) && (takesGlobs !== undefined || startOf(word) !== '')
}

const isSafeText = (word: ShellWord): boolean => startOf(word) !== '' && !startOf(word).startsWith('-')

const isKnown = (word: ShellWord): boolean => literalOf(word) !== undefined

const operandsOf = (words: readonly ShellWord[]): ShellWord[] => words.filter((word) => !startOf(word).startsWith('-'))

/** `sed -n '1,20p' file`: other scripts can write files and run commands. */
function readingSed(words: readonly ShellWord[]): Reading | undefined {
  const [flag, script, ...files] = words.map(literalOf)
  const isPrint = flag === '-n' && /^[0-9]+(,([0-9]+|\$))?p$/.test(script ?? '')
  const isReading = isPrint && files.every((file) => file !== undefined && !file.startsWith('-'))
  return isReading ? { paths: words.slice(2), readsDirectory: false } : undefined
}

/** `-v` evaluates the index of an array, which may run commands. */
function readingTest(words: readonly ShellWord[]): Reading | undefined {
  const isReading = words.every((word) => isKnown(word) && !/^-[vR]$/.test(startOf(word)))
  return isReading ? { paths: words.filter(isTestedFile), readsDirectory: false } : undefined
}

/** Whether a file exists is a fact about it. A text that looks like an operator makes its neighbours paths, too. */
function isTestedFile(_word: ShellWord, at: number, words: readonly ShellWord[]): boolean {
  const isNextTo = (place: number, operator: RegExp) => {
    const word = words[place]
    return word !== undefined && operator.test(startOf(word))
  }
  return isNextTo(at - 1, FILE_TEST) || isNextTo(at - 1, FILE_COMPARISON) || isNextTo(at + 1, FILE_COMPARISON)
}

const FILE_TEST = /^-[abcdefghkprsuwxGLNOS]$/
const FILE_COMPARISON = /^-(nt|ot|ef)$/
