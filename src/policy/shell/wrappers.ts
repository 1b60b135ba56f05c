/** Commands that run other commands: what of their arguments is the command that they run. */
import { unwrapFind, unwrapXargs } from './found-arguments.ts'
import { LAUNCHERS, unwrapLauncher } from './launchers.ts'
import { readShellCall } from './shell-calls.ts'
import type { ShellWord } from './shell-word.ts'
import { literalOf, literalWord, startOf } from './shell-word.ts'
import type { Options } from './skip-options.ts'
import { skipOptions } from './skip-options.ts'
import type { Unwrapped } from './unwrapped.ts'
import { hides, PLAIN, readsFile } from './unwrapped.ts'

/** In these places only the system's own programs are expected. */
const SYSTEM = /^(\/usr)?(\/local)?\/bin\/(?=[^/]+$)/

export function unwrap(words: readonly ShellWord[]): Unwrapped {
  const path = words[0] && literalOf(words[0])
  // An unknown name may be any command, and rules treat it so.
  if (path === undefined) return PLAIN
  const name = path.slice(path.lastIndexOf('/') + 1)
  const unwrapped = unwrapNamed(name, words)
  const isTrusted = !path.includes('/') || SYSTEM.test(path)
  // `./env` may be anything: what it seems to run counts, and it needs a permission itself.
  return unwrapped.kind === 'constant' && !isTrusted ? { ...unwrapped, kind: 'launcher' } : unwrapped
}

function unwrapNamed(name: string, words: readonly ShellWord[]): Unwrapped {
  const rest = words.slice(1)
  const options = Object.hasOwn(CONSTANT, name) ? CONSTANT[name] : undefined
  if (options) return unwrapConstant(name, rest, options)
  if (SHELLS.has(name)) return readShellCall(rest)
  if (LAUNCHERS.has(name)) return unwrapLauncher(rest)
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
      return asScript(rest.map(literalOf))
    case 'trap':
      return unwrapTrap(rest)
    case 'alias':
      return unwrapAliases(rest)
    case 'source':
    case '.':
      return readsFile(rest[0]) ? PLAIN : hides('it runs a script that cannot be seen')
    case 'git':
      return rest.some((word) => /^(-c|--config-env)/.test(startOf(word)))
        ? hides('git runs commands of its configuration')
        : PLAIN
    case 'bind':
    case 'complete':
    case 'enable':
    case 'fc':
    case 'hash':
    case 'mapfile':
    case 'printf':
    case 'readarray':
      return rest.some((word) => /^-[^-]/.test(startOf(word)) || startOf(word) === '')
        ? hidesUnlessText(name, rest)
        : PLAIN
    default:
      return PLAIN
  }
}

const SHELLS = new Set(['sh', 'bash', 'dash', 'zsh', 'ksh', 'mksh', 'ash', 'rbash', 'fish', 'csh', 'tcsh', 'pwsh'])

const NO_VALUE = /(?!)/
const CONSTANT: Readonly<Record<string, Options>> = {
  builtin: { flags: /(?!)/, valued: NO_VALUE, operands: 0 },
  command: { flags: /^-p$/, valued: NO_VALUE, operands: 0 },
  exec: { flags: /^-[cl]+$/, valued: /^-a/, operands: 0 },
  nice: { flags: /^-\d+$/, valued: /^(-n|--adjustment)/, operands: 0 },
  nohup: { flags: /(?!)/, valued: NO_VALUE, operands: 0 },
  setsid: { flags: /^-[cfw]+$/, valued: NO_VALUE, operands: 0 },
  stdbuf: { flags: /(?!)/, valued: /^(-[ioe]|--(input|output|error))/, operands: 0 },
  time: { flags: /^-p$/, valued: NO_VALUE, operands: 0 },
  timeout: {
    flags: /^(-[fpv]+|--preserve-status|--foreground|--verbose)$/,
    valued: /^(-[ks]|--kill-after|--signal)/,
    operands: 1,
  },
}

function unwrapConstant(name: string, words: readonly ShellWord[], options: Options): Unwrapped {
  // `command -v` only looks the name up.
  if (name === 'command' && /^-[vV]+$/.test((words[0] && literalOf(words[0])) ?? '')) return PLAIN
  const after = skipOptions(words, options)
  if (after === undefined) return { ...unwrapLauncher(words), hidden: `the options of ${name} are not known` }
  const inner = words.slice(after + options.operands)
  return inner.length ? { kind: 'constant', runs: [{ words: inner }], variables: [] } : PLAIN
}

const ENV: Pick<Options, 'flags' | 'valued'> = {
  flags: /^(-[i0v]+|-|--ignore-environment|--null|--debug)$/,
  valued: /^(-u|--unset|-C|--chdir)/,
}

function unwrapEnv(words: readonly ShellWord[]): Unwrapped {
  const dash = words.findIndex((word) => literalOf(word) !== '-')
  const given = words.slice(Math.max(dash, 0))
  const after = skipOptions(given, ENV)
  if (after === undefined) return { ...unwrapLauncher(given), hidden: 'the options of env are not known' }
  const options = given.slice(0, after).map(startOf)
  const variables = options.some((option) => /^(-u|--unset)/.test(option)) ? ['the environment'] : []
  const elsewhere = options.some((option) => /^(-C|--chdir)/.test(option))
  let at = after
  for (; at < given.length; at += 1) {
    // oxlint-disable-next-line typescript/no-non-null-assertion -- within the list
    const start = startOf(given[at]!)
    const equals = start.indexOf('=')
    if (equals <= 0) break
    variables.push(start.slice(0, equals))
  }
  const inner = given.slice(at)
  return inner.length ? { kind: 'constant', runs: [{ words: inner, elsewhere }], variables } : PLAIN
}

function asScript(texts: readonly (string | undefined)[]): Unwrapped {
  if (texts.length === 0) return PLAIN
  if (texts.includes(undefined)) return hides('it evaluates a text that cannot be seen')
  return { kind: 'constant', runs: [{ script: texts.join(' ') }], variables: [] }
}

function unwrapTrap(words: readonly ShellWord[]): Unwrapped {
  const [first, ...signals] = words.filter((word) => literalOf(word) !== '--')
  const text = first && literalOf(first)
  if (!first || ['-', '', '-l', '-p'].includes(text ?? '-?')) return PLAIN
  if (text === undefined || !signals.length) return hides('it traps with a text that cannot be seen')
  return { kind: 'also', runs: [{ script: text, elsewhere: true }], variables: [] }
}

function unwrapAliases(words: readonly ShellWord[]): Unwrapped {
  if (words.some((word) => literalOf(word) === undefined)) return hides('it defines an alias that cannot be seen')
  const values = words.map((word) => literalOf(word) ?? '').filter((text) => text.includes('='))
  const runs = values.map((text) => ({ script: text.slice(text.indexOf('=') + 1), elsewhere: true }))
  return { kind: runs.length ? 'also' : undefined, runs, variables: [] }
}

/** `printf` has no option but `-v`, which sets a variable. */
function hidesUnlessText(name: string, words: readonly ShellWord[]): Unwrapped {
  const first = words[0] ?? literalWord('')
  if (name === 'printf' && !startOf(first).startsWith('-') && startOf(first) !== '') return PLAIN
  return hides(`${name} may change what later commands do`)
}
