/** Builtins of bash that evaluate their arguments: an index of an array, arithmetic and some variables run commands. */
import type { ShellWord } from './shell-word.ts'
import { literalOf, startOf } from './shell-word.ts'
import type { Unwrapped } from './unwrapped.ts'
import { hides, PLAIN } from './unwrapped.ts'

/** Bash runs what these hold, or takes a function from them. */
export const isEvaluated = (variable: string): boolean =>
  /^(PS\d|PROMPT_COMMAND|BASH_ENV|ENV|SHELLOPTS|BASHOPTS|BASH_FUNC_.*)$/.test(variable)

const EVALUATES = hides('it evaluates a text, which may run commands')

/** `words` are those after the name; undefined for another command. */
export function readEvaluating(name: string, words: readonly ShellWord[]): Unwrapped | undefined {
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
    case 'printf':
      return words[0] === undefined || /^[^-]/.test(startOf(words[0])) ? PLAIN : EVALUATES
    case 'test':
    case '[':
      return mayEvaluateTest(words) ? EVALUATES : PLAIN
    default:
      return undefined
  }
}

/** `-i` evaluates values, `-n` and `-a` make names and lists of them. */
function isPlainDeclaration(word: ShellWord): boolean {
  const start = startOf(word)
  if (start.startsWith('-')) return /^-[gxrpfF]+$/.test(literalOf(word) ?? '')
  const name = /^([A-Za-z_]\w*)(\+?=.*)?$/s.exec(start)
  const isWhole = name?.[2] !== undefined || literalOf(word) !== undefined
  return isWhole && !isEvaluated(name?.[1] ?? '') && name !== null
}

/** The name of a variable, a number or a harmless option: `-C` of `mapfile` runs a command. */
function isPlainName(word: ShellWord): boolean {
  const text = literalOf(word)
  if (text === undefined || word.isMany) return false
  return !isEvaluated(text) && !/^-.*[Cp]/.test(text) && !text.includes('[')
}

/** `-v` evaluates an index. What is not known may be an operator, unless another one makes it an operand. */
function mayEvaluateTest(words: readonly ShellWord[]): boolean {
  const operands = literalOf(words.at(-1) ?? words[0] ?? NO_WORD) === ']' ? words.slice(0, -1) : words
  if (operands.some((word) => word.isMany || /^-[vR]$/.test(startOf(word)))) return true
  const isUnknown = (word: ShellWord | undefined) =>
    word !== undefined && startOf(word) === '' && literalOf(word) === undefined
  return operands.length === 2 ? isUnknown(operands[0]) : operands.length > 3 && operands.some(isUnknown)
}

const NO_WORD: ShellWord = { pieces: [], isMany: false, hasTilde: false }
