/** Commands that run other commands: what of their arguments is the command that they run. */
import { unwrapFind, unwrapXargs } from './found-arguments.ts'
import { LAUNCHERS, readSubcommand, unwrapLauncher } from './launchers.ts'
import { readEvaluating } from './evaluating-builtins.ts'
import { readSet, readShopt } from './shell-options.ts'
import { isLocale, isSafeLocale } from './safe-variables.ts'
import { isShell, readScriptFile, readShellCall } from './shell-calls.ts'
import type { ShellWord } from './shell-word.ts'
import { literalOf, literalWord, startOf } from './shell-word.ts'
import type { Options } from './skip-options.ts'
import { skipOptions } from './skip-options.ts'
import type { UnwrappedCommand } from './unwrapped.ts'
import { hides, PLAIN } from './unwrapped.ts'

/** The places in which only the system's own programs are expected. */
const SYSTEM = /^(\/usr)?(\/local)?\/bin\/(?=[^/]+$)/

export function unwrap(words: readonly ShellWord[]): UnwrappedCommand {
  const path = words[0] && literalOf(words[0])
  // An unknown name may be any command, and rules treat it so.
  if (path === undefined) return PLAIN
  const name = path.slice(path.lastIndexOf('/') + 1)
  const unwrappedCommand = unwrapNamed(name, words)
  const isTrusted = !path.includes('/') || SYSTEM.test(path)
  // `./env` may be anything: what it seems to run counts, and it needs a permission itself.
  return unwrappedCommand.kind === 'constant' && !isTrusted
    ? { ...unwrappedCommand, kind: 'launcher' }
    : unwrappedCommand
}

function unwrapNamed(name: string, words: readonly ShellWord[]): UnwrappedCommand {
  const rest = words.slice(1)
  const options = Object.hasOwn(CONSTANT, name) ? CONSTANT[name] : undefined
  if (options) return unwrapConstant(name, rest, options)
  if (isShell(name)) return readShellCall(name, rest)
  if (name === 'at' || name === 'batch' || name === 'crontab') return unwrapScheduler(rest)
  if (LAUNCHERS.has(name)) return unwrapLauncher(rest, name)
  switch (name) {
    case 'env':
      return unwrapEnv(rest)
    case 'xargs':
      return unwrapXargs(rest)
    case 'find':
    case 'fd':
    case 'fdfind':
      return unwrapFind(rest)
    case 'eval':
      return asScript(rest.map(literalOf).slice(literalOf(rest[0] ?? literalWord('')) === '--' ? 1 : 0))
    case 'trap':
      return unwrapTrap(rest)
    case 'alias':
      return unwrapAliases(rest)
    case 'set':
      return readSet(rest)
    case 'shopt':
      return readShopt(rest)
    case 'source':
    case '.':
      return readScriptFile(literalOf(rest[0] ?? literalWord('')) === '--' ? rest.slice(1) : rest)
    case 'git':
      if (setsConfiguration(rest)) return hides('git runs commands of its configuration')
      return namesHelper(rest) ? hides('git runs a program for such an address') : readSubcommand(name, rest)
    default:
      return readEvaluating(name, rest) ?? readSubcommand(name, rest)
  }
}

function unwrapScheduler(words: readonly ShellWord[]): UnwrappedCommand {
  const isList = words.some((word) => literalOf(word) === '-l')
  return isList ? PLAIN : { ...unwrapLauncher(words), hidden: 'it runs commands that cannot be seen' }
}

/**
 * Looks before the subcommand, where only options and their values are. `git clone -c` is for the repository that it
 * makes.
 */
function setsConfiguration(words: readonly ShellWord[]): boolean {
  const at = subcommandAt(words)
  const isClone = words.some((word) => literalOf(word) === 'clone')
  const before = at < 0 || isClone ? words : words.slice(0, at)
  return before.some((word) => /^(-c|--config)/.test(startOf(word)))
}

/** Returns the place of the subcommand, or of what is behind it, after an option that may have it as its value. */
function subcommandAt(words: readonly ShellWord[]): number {
  const isOption = (word: ShellWord | undefined) => word !== undefined && startOf(word).startsWith('-')
  return words.findIndex((word, index) => !isOption(word) && !isOption(words[index - 1]))
}

const CONNECTS: ReadonlySet<string | undefined> = new Set(
  'archive clone fetch ls-remote pull push remote submodule'.split(' '),
)

/** `ext::command`: an address whose helper is a program; see gitremote-helpers(7). */
function namesHelper(words: readonly ShellWord[]): boolean {
  const at = subcommandAt(words)
  const before = at < 0 ? words : words.slice(0, at + 1)
  return (
    before.some((word) => CONNECTS.has(literalOf(word))) &&
    words.some((word) => /^(-.*=)?[\w+.-]+::/.test(startOf(word)))
  )
}

const NO_VALUE = /(?!)/
const CONSTANT: Readonly<Record<string, Options>> = {
  builtin: { flags: /(?!)/, valued: NO_VALUE },
  command: { flags: /^-p$/, valued: NO_VALUE },
  // The flag `-a` is left out: `exec -a git-checkout git show` is `git checkout show`.
  exec: { flags: /^-[cl]+$/, valued: NO_VALUE },
  nice: { flags: /^-\d+$/, valued: /^(-n|--adjustment)/ },
  nohup: { flags: /(?!)/, valued: NO_VALUE },
  setsid: { flags: /^-[cfw]+$/, valued: NO_VALUE },
  stdbuf: { flags: /(?!)/, valued: /^(-[ioe]|--(input|output|error))/ },
  time: { flags: /^-p$/, valued: NO_VALUE },
  timeout: {
    flags: /^(-[fpv]+|--preserve-status|--foreground|--verbose)$/,
    valued: /^(-[ks]|--kill-after|--signal)/,
    operands: 1,
  },
}

function unwrapConstant(name: string, words: readonly ShellWord[], options: Options): UnwrappedCommand {
  // `command -v` only looks the name up.
  if (name === 'command' && /^-[vV]+$/.test((words[0] && literalOf(words[0])) ?? '')) return PLAIN
  const after = skipOptions(words, options)
  if (after === undefined) return { ...unwrapLauncher(words), hidden: `the options of ${name} are not known` }
  const inner = words.slice(after)
  return inner.length ? { kind: 'constant', runs: [{ words: inner }], variables: [] } : PLAIN
}

const ENV: Options = {
  flags: /^(-[i0v]+|-|--ignore-environment|--null|--debug)$/,
  valued: /^(-u|--unset|-C|--chdir)/,
}

function unwrapEnv(words: readonly ShellWord[]): UnwrappedCommand {
  const dash = words.findIndex((word) => literalOf(word) !== '-')
  const givenWords = words.slice(Math.max(dash, 0))
  const after = skipOptions(givenWords, ENV)
  if (after === undefined) return { ...unwrapLauncher(givenWords), hidden: 'the options of env are not known' }
  const options = givenWords.slice(0, after).map(startOf)
  const variables = options.some((option) => /^(-u|--unset)/.test(option)) ? ['the environment'] : []
  const elsewhere = options.some((option) => /^(-C|--chdir)/.test(option))
  let at = after
  for (; at < givenWords.length; at += 1) {
    // oxlint-disable-next-line typescript/no-non-null-assertion -- within the list
    const start = startOf(givenWords[at]!)
    const equals = start.indexOf('=')
    if (equals <= 0) break
    if (givenWords[at]?.isMany)
      return { ...unwrapLauncher(givenWords), hidden: 'a variable that env sets may be several words' }
    const name = start.slice(0, equals)
    const value = literalOf(givenWords[at] ?? literalWord(''))?.slice(equals + 1)
    if (!isLocale(name) || !isSafeLocale(value)) variables.push(name)
  }
  const inner = givenWords.slice(at)
  return inner.length ? { kind: 'constant', runs: [{ words: inner, elsewhere }], variables } : PLAIN
}

function asScript(texts: readonly (string | undefined)[]): UnwrappedCommand {
  if (texts.length === 0) return PLAIN
  if (texts.includes(undefined)) return hides('it evaluates a text that cannot be seen')
  return { kind: 'constant', runs: [{ script: texts.join(' ') }], variables: [] }
}

function unwrapTrap(words: readonly ShellWord[]): UnwrappedCommand {
  const [first, ...signals] = words.filter((word) => literalOf(word) !== '--')
  const text = first && literalOf(first)
  if (!first || ['-', '', '-l', '-p'].includes(text ?? '-?')) return PLAIN
  if (text === undefined || !signals.length) return hides('it traps with a text that cannot be seen')
  return { kind: 'also', runs: [{ script: text, elsewhere: true }], variables: [] }
}

/** Its text and what follows its name are one line: `alias ls='true;'` makes a command of the `x` in `ls x`. */
function unwrapAliases(words: readonly ShellWord[]): UnwrappedCommand {
  const values = words.map((word) => literalOf(word) ?? '').filter((text) => text.includes('='))
  const runs = values.map((text) => ({ script: text.slice(text.indexOf('=') + 1), elsewhere: true }))
  const isShown = words.every((word) => /^[^=]+$/.test(literalOf(word) ?? ''))
  return isShown ? PLAIN : { kind: 'also', runs, variables: [], hidden: 'it defines an alias' }
}
