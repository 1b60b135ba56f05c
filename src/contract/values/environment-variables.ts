/** Environment variables of commands: which names a client may set, and the values that may be shown. */
import { z } from 'zod'

export const MAX_NAME_LENGTH = 128

export const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/

/** Returns true for a name that a shell can give a variable. */
export const isVariableName = (name: string): boolean => VARIABLE_NAME.test(name)

/**
 * Variables that bash, the dynamic linker, git or this server use: setting them would break commands, or execute code.
 */
const RESERVED_NAMES = new Set(
  ['PATH', 'HOME', 'SHELL', 'USER', 'LOGNAME', 'PWD', 'OLDPWD', 'IFS', 'ENV', 'TERM', 'TMPDIR', 'CDPATH', '_'].concat(
    ['PS0', 'PS1', 'PS2', 'PS3', 'PS4', 'PROMPT_COMMAND', 'PROMPT_DIRTRIM', 'SHELLOPTS', 'BASHOPTS', 'BASHPID', 'BASH'],
    ['POSIXLY_CORRECT', 'GLOBIGNORE', 'EXECIGNORE', 'FIGNORE', 'FUNCNAME', 'FUNCNEST', 'DIRSTACK', 'PIPESTATUS'],
    ['UID', 'EUID', 'PPID', 'GROUPS', 'RANDOM', 'SRANDOM', 'SECONDS', 'EPOCHREALTIME', 'EPOCHSECONDS', 'LINENO'],
    ['SHLVL', 'REPLY', 'OPTARG', 'OPTERR', 'OPTIND', 'TIMEFORMAT', 'TMOUT', 'COLUMNS', 'LINES', 'LANG', 'LANGUAGE'],
  ),
)
const RESERVED_PREFIXES = [
  'BASH_',
  'LD_',
  'DYLD_',
  'OPENHANDS_',
  'LLM_',
  'AGENT_SERVER',
  '__agent_server',
  'GIT_CONFIG',
].concat(['LC_', 'HIST', 'COMP_'])

export function faultOfName(name: string): string | undefined {
  if (name.length > MAX_NAME_LENGTH || !isVariableName(name)) {
    return `a name must be that of an environment variable: a letter or "_", then letters, digits and "_", at most ${MAX_NAME_LENGTH} characters`
  }
  if (RESERVED_NAMES.has(name)) return `the name ${name} is reserved`
  const prefix = RESERVED_PREFIXES.find((reservedPrefix) => name.startsWith(reservedPrefix))
  return prefix && `names that begin with ${prefix} are reserved`
}

/**
 * What programs take as options, some of them with a program to run: an agent that may only read runs `git diff`, and that
 * runs `GIT_EXTERNAL_DIFF`.
 */
const OPTIONS_OF_PROGRAMS = [
  /^(GIT|SSH|SUDO|XDG|RIPGREP|GREP|TAR|OPENSSL|MALLOC|GLIBC|GCONV|NODE|NPM|PIP|GEM|BUNDLE|LUA|DOTNET|CARGO|CGO|MAVEN|GRADLE)_/i,
  /^(LESS|TERMINFO|LOCPATH|NLSPATH|PYTHON|PERL|RUBY|PHP|RUST|MAKE)/i,
  /^(GOFLAGS|GOPATH|GOROOT|GOENV|GOPROXY|PAGER|MANPAGER|GH_PAGER|SYSTEMD_PAGER|EDITOR|VISUAL|BROWSER)$/i,
  /^(JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS)$/i,
]
const CREDENTIAL = /(TOKEN|PASSWORD|SECRET|KEY|AUTH|USER|USERNAME)$/i

/** Returns true if a variable changes what programs do, and is not a credential. */
export const changesPrograms = (name: string): boolean =>
  OPTIONS_OF_PROGRAMS.some((names) => names.test(name)) && !CREDENTIAL.test(name)

const MAX_VARIABLES = 64
const MAX_VALUE_BYTES = 32 * 1024
/** They are in memory and in the log. */
const MAX_BYTES = 64 * 1024

const bytesOf = (text: string): number => new TextEncoder().encode(text).length

/** Name -> value. Errors name the variable: unlike a secret, it is shown. */
export const EnvironmentVariables = z
  .record(z.string(), z.string())
  .check(({ value, issues }) => {
    const fail = (message: string) => issues.push({ code: 'custom', input: undefined, path: [], message })
    const entries = Object.entries(value)
    for (const [name, text] of entries) {
      const fault = faultOfName(name) ?? (text.includes('\0') ? 'a value must not contain a NUL character' : undefined)
      if (fault !== undefined) fail(fault)
      else if (bytesOf(text) > MAX_VALUE_BYTES) fail(`the value of ${name} has more than ${MAX_VALUE_BYTES} bytes`)
    }
    if (entries.length > MAX_VARIABLES) fail(`at most ${MAX_VARIABLES} variables are allowed`)
    if (entries.reduce((sum, [name, text]) => sum + bytesOf(name) + bytesOf(text), 0) > MAX_BYTES)
      fail(`the variables together have more than ${MAX_BYTES / 1024} KiB`)
  })
  .meta({
    propertyNames: { type: 'string', pattern: VARIABLE_NAME.source, maxLength: MAX_NAME_LENGTH },
    additionalProperties: { type: 'string', maxLength: MAX_VALUE_BYTES },
    maxProperties: MAX_VARIABLES,
  })
