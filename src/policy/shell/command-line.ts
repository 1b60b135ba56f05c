/** What a command line would do, as far as its text tells: the result of `readCommandLine`. */
import type { ShellWord } from './shell-word.ts'
import { literalOf } from './shell-word.ts'

/**
 * `constant` wrappers (`env`, `timeout`, `bash -c`) change nothing about what they run: only that needs a permission.
 * `also` (`find -exec`): it needs one itself, and so does what it runs. A `launcher` (`sudo`, `ssh`) needs a rule that
 * names more than the launcher; its `commands` are guesses of what it may run. A `script` (`bash file`) is decided by
 * itself, and as the command that a deny rule may name.
 */
export type Wrapping = {
  readonly kind: 'constant' | 'also' | 'launcher' | 'script'
  readonly commands: readonly SimpleCommand[]
}

/** One command with its arguments, without its redirections and its assignments. */
export type SimpleCommand = {
  /** The name first. */
  readonly words: readonly ShellWord[]
  /** The directories in which it may run; undefined: anywhere. */
  readonly cwds: readonly string[] | undefined
  /** A variable set for it that can change which program runs or what it does. */
  readonly unsafeVariable: string | undefined
  readonly wraps: Wrapping | undefined
}

export type Redirection = {
  readonly kind: 'read' | 'edit'
  readonly target: ShellWord
  readonly cwds: readonly string[] | undefined
  /** It reaches no file. */
  readonly isStream: boolean
}

export type CommandLine = {
  readonly commands: readonly SimpleCommand[]
  readonly redirections: readonly Redirection[]
  /** The values of variables that programs may take commands from, such as GIT_EDITOR. */
  readonly values: readonly ShellWord[]
  /** Why there may be commands that are not in `commands`. */
  readonly hidden: string | undefined
  /** Why it has to be asked about, although all its commands are known. */
  readonly unusual: string | undefined
}

/** Each command, and those that they wrap. */
export function* allCommands(commands: readonly SimpleCommand[]): Generator<SimpleCommand> {
  for (const command of commands) {
    yield command
    if (command.wraps) yield* allCommands(command.wraps.commands)
  }
}

/** 63 is that of a process substitution; others above 9 are those of the shell itself. */
const STREAM = /^\/dev\/(null|zero|full|random|urandom|stdin|stdout|stderr|tty|fd\/(\d|63))$/

/** Returns true for what a program may read without reaching a file that nobody has opened before. */
export const isStream = (target: ShellWord): boolean => STREAM.test(literalOf(target) ?? '')

/**
 * Returns true if writing to it reaches no file. The kernel opens the file of a descriptor again: `echo x < a > /dev/stdin`
 * writes to `a`. Stdout and stderr are those of the command, unless the line puts another descriptor in their place.
 */
export const isOutput = (target: ShellWord, movesDescriptors: boolean): boolean =>
  (movesDescriptors ? /^\/dev\/(null|zero|full|tty)$/ : /^\/dev\/(null|zero|full|tty|stdout|stderr)$/).test(
    literalOf(target) ?? '',
  )
