/** The texts that are sent to bash: how it is set up, how a command is run, and what it reports at the end of each. */
import { REPORT, STATE, STATE_END } from './bash-report.ts'

/**
 * Where the shell reports to. Closed for every command, so that none can write there; a number that scripts do not
 * choose for themselves, and that leaves the low ones to them.
 */
const REPORT_FD = 99

export const BASH_ARGV = ['bash', '--noprofile', '--norc', '--noediting', '-i'] as const
/** The descriptor that bash is started with for its reports. */
export const REPORT_STDIO_INDEX = 3

/**
 * Comes first. What the server itself was started with may be open here too (`exec 5<key`; Node closes only what it
 * opened): closed before anything that an earlier shell has left is read.
 */
export function beginScript(workdir: string): string {
  return `for __agent_server_fd in /proc/self/fd/*; do
  __agent_server_fd=\${__agent_server_fd##*/}
  case $__agent_server_fd in [0-${REPORT_STDIO_INDEX}] | *[!0-9]*) ;; *) eval "exec $__agent_server_fd>&-" ;; esac
done
cd -P -- ${quote(workdir)}
unset __agent_server_fd OLDPWD
`
}

/**
 * `-i` because a non-interactive bash dies with a foreground job that was interrupted; what else it brings (prompts,
 * history, mail checks) is switched off. `-m` gives each command a process group of its own, to be signalled alone.
 */
export function setUpScript(workdir: string): string {
  // Aliases that were restored must not change what these lines mean.
  return `\\shopt -u expand_aliases
set -m +H +o history
unset HISTFILE MAILCHECK
PS1= PS2=
shopt -u checkwinsize
exec ${REPORT_FD}>&${REPORT_STDIO_INDEX} ${REPORT_STDIO_INDEX}>&-
${reportFunctions(workdir)}shopt -s expand_aliases
`
}

/** Sources a saved state; comes before the set-up, which has the last word. */
export function restoreScript(statePath: string, { withOptions }: { withOptions: boolean }): string {
  return `. ${quote(statePath)} ${withOptions ? 'options' : ''} </dev/null >/dev/null 2>&1 ${REPORT_STDIO_INDEX}>&-\n`
}

export function exportScript(variables: Readonly<Record<string, string>>): string {
  const assignments = assign(variables)
  return assignments && `export ${assignments}\n`
}

/** Unsets those that have these values; another value is somebody's own. */
export function unsetStaleScript(variables: Readonly<Record<string, string>> = {}): string {
  return Object.entries(variables)
    .map(([name, value]) => `[[ \${${name}-} != ${quote(value)} ]] || unset -v ${name}\n`)
    .join('')
}

export type CommandFiles = {
  readonly script: string
  /** Nothing to read when undefined. */
  readonly stdin: string | undefined
  readonly stdout: string
  readonly stderr: string
}

/**
 * Sources the command, so that everything it changes in the shell stays. `ownEnv` (its secrets) is in its environment and in
 * that of its processes, but not in the shell's own: they are always the current ones, and never in the saved state.
 */
export function commandScript(files: CommandFiles, ownEnv: Readonly<Record<string, string>>): string {
  const redirections = `<${quote(files.stdin ?? '/dev/null')} >${quote(files.stdout)} 2>${quote(files.stderr)} ${REPORT_FD}>&-`
  const assignments = assign(ownEnv)
  // In POSIX mode what is assigned for a special builtin stays in the shell; called so, it is an ordinary one.
  const source = assignments && `${assignments} \\command`
  return `${source} \\. ${quote(files.script)} ${redirections}\n`
}

/** Must be the next line after what it reports on: `$?` is the exit code. */
export function reportScript(token: string, serial: number, lastBackgroundPid: string): string {
  return `__agent_server_report ${serial} "$?" ${quote(lastBackgroundPid)} ${token}\n`
}

/**
 * Builtins only, and safe under `set -eu` and any IFS. First the report, for which the caller waits; then the state to
 * start another shell from, which costs the caller nothing.
 */
function reportFunctions(workdir: string): string {
  return `__agent_server_report() {
  local __lost=\${__agent_server_lost-} __new=
  [[ -z $__lost ]] || builtin unset -v __agent_server_lost
  [[ $PWD -ef . ]] || __agent_server_find_cwd
  [[ \${!-} == "$3" ]] || ! builtin kill -0 "\${!-}" 2>/dev/null || __new=yes
  builtin printf '%s\\0' '' '${REPORT}'"$4" "$1" "$2" "$PWD" "$__lost" "\${!-}" "$__new" "$$" >&${REPORT_FD}
  {
    builtin printf '%s\\0' '${STATE}'"$4"
    builtin declare -px
    builtin declare -pf
    builtin alias -p
    builtin printf 'builtin cd -- %q || __agent_server_lost=%q\\n[[ $1 ]] || return 0\\n' "$PWD" "$PWD"
    builtin shopt -p
    builtin set +o
    builtin printf '\\0%s\\0' '${STATE_END}'"$4"
  } >&${REPORT_FD} 2>/dev/null || :
}
__agent_server_find_cwd() {
  local __here=$PWD
  builtin cd -Pe . && [[ $PWD -ef . ]] && return
  builtin cd -- "$__here" && return
  __lost=$__here
  builtin cd -- ${quote(workdir)} || PWD=$__here
} >/dev/null 2>&1
`
}

function assign(variables: Readonly<Record<string, string>>): string {
  return Object.entries(variables)
    .filter(([name]) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name))
    .map(([name, value]) => `${name}=${quote(value)}`)
    .join(' ')
}

/** As one word, whatever it holds. NUL cannot be in a word, nor in anything that reaches a process. */
function quote(text: string): string {
  return `'${text.replaceAll('\0', '').replaceAll("'", String.raw`'\''`)}'`
}
