/** Builtins of bash that evaluate their arguments: an index of an array, arithmetic and some variables run commands. */
import { decidesFiles, isLocale, isSafeLocale } from './safe-variables.ts'
import type { ShellWord } from './shell-word.ts'
import { literalOf, startOf } from './shell-word.ts'
import type { UnwrappedCommand } from './unwrapped.ts'
import { hides, PLAIN } from './unwrapped.ts'

/** Bash runs what these hold, or takes a function, an alias or the path of a program from them. */
export const isEvaluated = (variable: string): boolean =>
  /^(PS\d|PROMPT_COMMAND|MAIL.*|BASH_(ENV|CMDS|ALIASES|FUNC_.*)|ENV|SHELLOPTS|BASHOPTS)$/.test(variable) ||
  isInteger(variable) ||
  decidesFiles(variable) ||
  isLocale(variable)

/** Bash evaluates what is assigned to these as arithmetic. */
export const isInteger = (variable: string): boolean =>
  /^(S?RANDOM|SECONDS|HISTCMD|LINENO|OPTIND|BASHPID|E?UID|PPID)$/.test(variable)

/** Bash looks for no program of these names. Of the builtins, they are those that a command line may have without a permission. */
export const isFreeBuiltin = (name: string): boolean =>
  /^(:|\[|cd|dirs|echo|false|jobs|popd|printf|pushd|pwd|test|times|true|type|ulimit|umask|wait)$/.test(name)

const EVALUATES = hides('it evaluates a text, which may run commands')

/** `words` are those after the name; undefined for another command. */
export function readEvaluating(name: string, words: readonly ShellWord[]): UnwrappedCommand | undefined {
  switch (name) {
    case 'let':
    case 'compgen':
    case 'bind':
    case 'complete':
    case 'enable':
    case 'fc':
    case 'hash':
      return words.length === 0 ? PLAIN : EVALUATES
    case 'declare':
    case 'typeset':
    case 'local':
      return words.every((word) => isPlainDeclaration(word) && !mayBeList(word)) ? PLAIN : EVALUATES
    case 'export':
    case 'readonly':
      return words.every(isPlainDeclaration) ? PLAIN : EVALUATES
    case 'read':
    case 'unset':
    case 'getopts':
    case 'wait':
    case 'mapfile':
    case 'readarray':
      return words.every(isPlainName) ? PLAIN : EVALUATES
    case 'jobs':
      return words.every((word) => /^(-[lnprs]+|%.*)$/.test(literalOf(word) ?? '')) ? PLAIN : EVALUATES
    case 'printf':
      return isPlainFormat(words) ? PLAIN : EVALUATES
    case 'test':
    case '[':
      return mayEvaluateTest(words) ? EVALUATES : PLAIN
    default:
      return undefined
  }
}

const SET_VARIABLES = new Set('declare export getopts local mapfile read readarray readonly typeset'.split(' '))

/**
 * Returns true if a builtin may give a value to the variable. Bash itself makes some numbers, which need a permission
 * anyway.
 */
export function maySet([first, ...rest]: readonly ShellWord[], variable: string): boolean {
  const name = first && literalOf(first)
  if (name === undefined || isEvaluated(variable) || !SET_VARIABLES.has(name)) return false
  return rest.some((word) => literalOf(word) === undefined || /^-?\w*/.exec(startOf(word))?.[0].endsWith(variable))
}

/** The variables that a builtin sets or removes by their names, for later command lines, too: `export LD_PRELOAD=x`. */
export function namesSetBy([first, ...rest]: readonly ShellWord[]): readonly string[] {
  const name = first && literalOf(first)
  if (name === undefined || !(SET_VARIABLES.has(name) || name === 'unset')) return []
  return rest.flatMap((word) => /^([A-Za-z_]\w*)(?:\+?=|$)/.exec(startOf(word))?.[1] ?? [])
}

/** Bash, or a builtin that names no variable, sets these: any command may, and so may `read`, `cd` and `[[ x =~ y ]]`. */
export const isSetByBash = (variable: string): boolean =>
  /^(_|REPLY|MAPFILE|OPTARG|OLDPWD|PWD|DIRSTACK|PIPESTATUS|COPROC\w*|COMP_?\w+|READLINE_\w+|BASH_\w+)$/.test(variable)

/** `-i` evaluates values, `-n` and `-a` make names and lists of them. */
function isPlainDeclaration(word: ShellWord): boolean {
  const start = startOf(word)
  if (start.startsWith('-')) return /^-[gxrpfF]+$/.test(literalOf(word) ?? '')
  const name = /^([A-Za-z_]\w*)(\+?=.*)?$/s.exec(start)
  if (name?.[1] !== undefined && isLocale(name[1]))
    return name[2] === undefined || isSafeLocale(literalOf(word)?.slice(name[1].length + 1))
  // `command export x=$y` splits the value, which may name other variables.
  const isWhole = !word.isMany && (name?.[2] !== undefined || literalOf(word) !== undefined)
  return isWhole && !isEvaluated(name?.[1] ?? '') && name !== null
}

/** The value for a variable that is an array by now: `declare x='([index]=value)'` evaluates the index. */
function mayBeList(word: ShellWord): boolean {
  const value = /^\w+\+?=(.?)/s.exec(startOf(word))?.[1]
  return value === '(' || (value === '' && literalOf(word) === undefined)
}

/** `-v` sets a variable, and so does `%n`: `printf 12%n PATH` makes `./2` the place of all programs. */
function isPlainFormat(words: readonly ShellWord[]): boolean {
  const [format, ...operands] = words
  if (!format) return true
  const text = literalOf(format)
  if (!/^[^-]/.test(startOf(format)) || (text === undefined && (format.isMany || operands.length > 0))) return false
  return !/%[-+ #0'*.\dhjlqtzL]*n/.test((text ?? '').replaceAll('%%', ''))
}

/** The name of a variable, a number or a harmless option: `-C` of `mapfile` runs a command. */
function isPlainName(word: ShellWord): boolean {
  const text = literalOf(word)
  if (text === undefined || word.isMany) return false
  // `-aHOME` names a variable, too.
  return !isEvaluated(text) && !/^-.*[Cp]|^-\w*a./.test(text) && !text.includes('[')
}

/** `-v` evaluates an index. What is not known may be an operator, unless another one makes it an operand. */
function mayEvaluateTest(words: readonly ShellWord[]): boolean {
  const operands = literalOf(words.at(-1) ?? words[0] ?? NO_WORD) === ']' ? words.slice(0, -1) : words
  if (operands.some((word) => word.isMany || /^-[vR]$/.test(startOf(word)))) return true
  const isUnknown = (word: ShellWord | undefined) =>
    word !== undefined && /^-?$/.test(startOf(word)) && literalOf(word) === undefined
  if (operands.length < 3) return operands.length === 2 && isUnknown(operands[0])
  // The second one of three is an operator, or the first one is `!`.
  return operands.length === 3 ? isUnknown(operands[1]) : operands.some(isUnknown)
}

const NO_WORD: ShellWord = { pieces: [], isMany: false, hasTilde: false }
