/** Calls of a shell: `bash -c '…'`, `bash file`, or commands on its standard input. */
import type { ShellWord } from './shell-word.ts'
import { arePlainLetters, isPlainOption } from './shell-options.ts'
import { literalOf, startOf, UNKNOWN_WORD } from './shell-word.ts'
import type { Unwrapped } from './unwrapped.ts'
import { hides, PLAIN, readsFile } from './unwrapped.ts'

const VALUED = /^(-[a-zA-Z]*[oO]|\+[oO]|--rcfile|--init-file)$/
const LONG = /^--(login|norc|noprofile|posix|noediting|restricted|verbose)$/

/** `words` are those after the name. */
export function readShellCall(words: readonly ShellWord[]): Unwrapped {
  let runsText = false
  for (let at = 0; at < words.length; at += 1) {
    // oxlint-disable-next-line typescript/no-non-null-assertion -- within the list
    const word = words[at]!
    const text = literalOf(word)
    if (text === undefined && /^$|^[-+]/.test(startOf(word))) return HIDDEN
    if (text === undefined || !/^[-+]./.test(text)) return readOperand(words.slice(at), runsText)
    if (text === '--') return readOperand(words.slice(at + 1), runsText)
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
    if (/[oO]$/.test(text) && !isPlainOption(value ?? '')) return HIDDEN
  }
  return HIDDEN
}

const HIDDEN = hides('it runs a shell whose commands cannot be seen')

function readOperand(words: readonly ShellWord[], runsText: boolean): Unwrapped {
  if (!runsText) return readScriptFile(words)
  const script = words[0] && literalOf(words[0])
  return script === undefined ? HIDDEN : { kind: 'constant', runs: [{ script }], variables: [] }
}

/** What is in the file cannot be seen; but shells search a name in PATH, so it is a command, too. */
export function readScriptFile(words: readonly ShellWord[]): Unwrapped {
  return readsFile(words[0]) ? { kind: 'script', runs: [{ words }], variables: [] } : HIDDEN
}
