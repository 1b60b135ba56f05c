/**
 * A conversation's secrets on the wire: values are written and never returned. No message here quotes a name or a
 * value.
 */
import { z } from 'zod'
import { OnlyPage } from './page.ts'

/**
 * In characters. A shorter value would be found in innocent text, and could be guessed from the places where it was
 * redacted.
 */
export const MIN_SECRET_LENGTH = 8
/** Per value. The kernel accepts no environment variable above 128 KiB. */
export const MAX_SECRET_BYTES = 32 * 1024
/** Per conversation; even with the longest values, the environment has room for everything else. */
export const MAX_SECRETS = 64
const MAX_NAME_LENGTH = 128

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/

/** Returns true for a name that a shell can give a variable. */
export const isVariableName = (name: string): boolean => NAME.test(name)

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

/** Name -> value, as a client sends them. Errors are reported by position: a name may contain a value by mistake. */
export const Secrets = z
  .record(z.string(), z.string())
  .check(({ value, issues }) => {
    Object.entries(value).forEach(([name, text], at) => {
      const fault = faultOfName(name) ?? faultOfValue(text)
      if (fault) issues.push({ code: 'custom', input: undefined, path: [], message: `entry ${at + 1}: ${fault}` })
    })
    if (Object.keys(value).length > MAX_SECRETS) {
      issues.push({ code: 'custom', input: undefined, path: [], message: `at most ${MAX_SECRETS} are allowed` })
    }
  })
  .meta({
    // A schema counts characters, and the server UTF-16 units: a character has at most two.
    propertyNames: { type: 'string', pattern: NAME.source, maxLength: MAX_NAME_LENGTH },
    additionalProperties: { type: 'string', minLength: MIN_SECRET_LENGTH / 2, maxLength: MAX_SECRET_BYTES },
    maxProperties: MAX_SECRETS,
  })
  .describe(
    `Environment variables of the conversation's commands, by name. Values have ${MIN_SECRET_LENGTH} characters to ${MAX_SECRET_BYTES / 1024} KiB; names that bash, git or the server use are refused.`,
  )
export type Secrets = z.infer<typeof Secrets>

export const PutSecrets = z
  .strictObject({ secrets: Secrets })
  .meta({ id: 'PutSecrets', examples: [{ secrets: { GITHUB_TOKEN: 'ghp_example-value' } }] })

/** A list like any other, with only one page. */
export const SecretNames = z
  .object({ items: z.array(z.string()).describe('Names, sorted.'), next_page_id: OnlyPage })
  .meta({ id: 'SecretNames', examples: [{ items: ['DB_URL', 'GITHUB_TOKEN'], next_page_id: null }] })
export type SecretNames = z.infer<typeof SecretNames>

function faultOfName(name: string): string | undefined {
  if (name.length > MAX_NAME_LENGTH || !isVariableName(name)) {
    return `a name must be that of an environment variable: a letter or "_", then letters, digits and "_", at most ${MAX_NAME_LENGTH} characters`
  }
  if (RESERVED_NAMES.has(name)) return `the name ${name} is reserved`
  const prefix = RESERVED_PREFIXES.find((reserved) => name.startsWith(reserved))
  return prefix && `names that begin with ${prefix} are reserved`
}

function faultOfValue(value: string): string | undefined {
  if (value.includes('\0')) return 'a value must not contain a NUL character'
  // Do not count white space that editors and `echo` add, and that commands often remove again.
  if (value.trim().length < MIN_SECRET_LENGTH) {
    return `a value must have at least ${MIN_SECRET_LENGTH} characters; a shorter one could not be redacted reliably`
  }
  if (new TextEncoder().encode(value).length > MAX_SECRET_BYTES)
    return `a value can have at most ${MAX_SECRET_BYTES} bytes`
  return undefined
}
