/** What a command that runs other commands comes to. */
import type { Wrapping } from './command-line.ts'
import type { ShellWord } from './shell-word.ts'
import { literalOf } from './shell-word.ts'

/** How a shell reads a text: as bash does, or also another shell of POSIX. */
export type Syntax = 'bash' | 'posix'

/** `elsewhere`: it may run in another directory, or later. `syntax`: absent, that of the text around it. */
export type WrappedText = { readonly elsewhere?: boolean } & (
  | { readonly script: string; readonly syntax?: Syntax }
  | { readonly words: readonly ShellWord[] }
)

export type UnwrappedCommand = {
  /** Undefined: it runs nothing else. */
  readonly kind: Wrapping['kind'] | undefined
  readonly runs: readonly WrappedText[]
  /** Names of the variables that it sets or unsets for what it runs. */
  readonly variables: readonly string[]
  /** Why it may run something that is not in `runs`. */
  readonly hidden?: string
}

export const PLAIN: UnwrappedCommand = { kind: undefined, runs: [], variables: [] }
export const hides = (hiddenReason: string): UnwrappedCommand => ({ ...PLAIN, hidden: hiddenReason })

/** A separate file, not a pipe with the output of another command. */
export function readsFile(word: ShellWord | undefined): boolean {
  const text = word && literalOf(word)
  return text !== undefined && !/^\/(dev|proc)\//.test(text) && !text.startsWith('-')
}
