/** Calls of a shell: `bash -c '…'`, `bash file`, or commands on its standard input. */
import type { ShellWord } from './shell-word.ts'
import { arePlainLetters, isPlainOption } from './shell-options.ts'
import { literalOf, startOf, UNKNOWN_WORD } from './shell-word.ts'
import type { Syntax, UnwrappedCommand } from './unwrapped.ts'
import { hides, PLAIN, readsFile } from './unwrapped.ts'

const VALUED = /^(-[a-zA-Z]*[oO]|\+[oO])$/
const LONG = /^--(login|norc|noprofile|posix|noediting|restricted|verbose)$/

/** Undefined: its syntax is another one, in which a constant text can hide a command. `sh` is often not bash. */
const SHELLS: Readonly<Record<string, Syntax | undefined>> = {
  bash: 'bash',
  rbash: 'bash',
  sh: 'posix',
  dash: 'posix',
  ash: 'posix',
  zsh: undefined,
  ksh: undefined,
  mksh: undefined,
  fish: undefined,
  csh: undefined,
  tcsh: undefined,
  pwsh: undefined,
}

export const isShell = (name: string): boolean => Object.hasOwn(SHELLS, name)

/** `words` are those after the name. */
export function readShellCall(name: string, words: readonly ShellWord[]): UnwrappedCommand {
  const foundCommand = readWords(words, SHELLS[name])
  const runsText = foundCommand.runs.some((run) => 'script' in run)
  return runsText && SHELLS[name] === undefined
    ? { ...foundCommand, hidden: `only ${name} knows how it reads a text` }
    : foundCommand
}

function readWords(words: readonly ShellWord[], syntax: Syntax | undefined): UnwrappedCommand {
  let runsText = false
  for (let at = 0; at < words.length; at += 1) {
    // oxlint-disable-next-line typescript/no-non-null-assertion -- within the list
    const word = words[at]!
    const text = literalOf(word)
    if (text === undefined && /^$|^[-+]/.test(startOf(word))) return HIDDEN
    if (text === undefined || !/^[-+]./.test(text)) return readOperand(words.slice(at), runsText, syntax)
    if (text === '--') return readOperand(words.slice(at + 1), runsText, syntax)
    if (text.startsWith('--')) {
      if (/^--(version|help)$/.test(text)) return PLAIN
      if (!LONG.test(text)) return HIDDEN
    } else {
      if (!arePlainLetters(text.slice(1).replaceAll(/[cilOo]/g, ''))) return HIDDEN
      runsText ||= text.startsWith('-') && text.includes('c')
    }
    if (!VALUED.test(text)) continue
    at += 1
    const value = words[at] && literalOf(words[at] ?? UNKNOWN_WORD)
    if (!isPlainOption(value ?? '')) return HIDDEN
  }
  return HIDDEN
}

const HIDDEN = hides('it runs a shell whose commands cannot be seen')

function readOperand(words: readonly ShellWord[], runsText: boolean, syntax: Syntax = 'bash'): UnwrappedCommand {
  if (!runsText) return readScriptFile(words)
  const script = words[0] && literalOf(words[0])
  return script === undefined ? HIDDEN : { kind: 'constant', runs: [{ script, syntax }], variables: [] }
}

/** What is in the file cannot be seen; but shells search a name in PATH, so it is a command, too. */
export function readScriptFile(words: readonly ShellWord[]): UnwrappedCommand {
  return readsFile(words[0]) ? { kind: 'script', runs: [{ words }], variables: [] } : HIDDEN
}
