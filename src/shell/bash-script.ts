/** The scripts that are sent to bash: set-up, running a command, and the report after each. */
import { isVariableName } from '../contract/values/environment-variables.ts'
import { REPORT, STATE, STATE_END } from './bash-report.ts'

/**
 * The shell's descriptor for reports. Closed for every command, so that no program can write to it; a number that
 * scripts do not use themselves, which leaves the low ones free.
 */
const REPORT_FD = 99

export const BASH_ARGV = ['bash', '--noprofile', '--norc', '--noediting', '-i'] as const
/** The number of the report descriptor when bash starts. */
export const REPORT_STDIO_INDEX = 3

/**
 * Runs first. Descriptors of the server itself may be inherited (`exec 5<key`; Node closes only those that it opened):
 * they are closed before any state of an earlier shell is read.
 */
export function beginScript(workdir: string): string {
  return `for __agent_server_fd in /proc/self/fd/*; do
  __agent_server_fd=\${__agent_server_fd##*/}
  case $__agent_server_fd in [0-${REPORT_STDIO_INDEX}] | *[!0-9]*) ;; *) eval "exec $__agent_server_fd>&-" ;; esac
done
exec ${REPORT_FD}>&${REPORT_STDIO_INDEX} ${REPORT_STDIO_INDEX}>&-
cd -P -- ${quote(workdir)}
shopt -u expand_aliases
unset __agent_server_fd OLDPWD
`
}

/**
 * Restored shell functions may have the names of builtins: `builtin`, `export`, `shopt`. So the server's lines call
 * builtins through `builtin`, and remove a function of that name first. Only in POSIX mode is `unset` certain to be the
 * builtin, and only an assignment is certain to enable that mode. The changed options are restored.
 */
const OWN_BUILTIN = `__agent_server_own_builtin() {
  if [[ -o posix ]]; then
    \\unset -f builtin || \\:
  else
    __agent_server_options=:$BASHOPTS: POSIXLY_CORRECT=
    \\unset -f builtin || \\:
    \\unset -v POSIXLY_CORRECT
    if [[ :$BASHOPTS: != "$__agent_server_options" ]]; then
      for __agent_server_option in expand_aliases inherit_errexit interactive_comments shift_verbose sourcepath; do
        if [[ $__agent_server_options == *:"$__agent_server_option":* ]]; then
          builtin shopt -s "$__agent_server_option"
        else
          builtin shopt -u "$__agent_server_option" || [[ 1 ]]
        fi
      done
    fi
    builtin unset -v __agent_server_options __agent_server_option
  fi
} 2>/dev/null
`

/**
 * `-i` because a non-interactive bash dies with a foreground job that was interrupted; its other effects (prompts,
 * history, mail checks) are disabled. `-m` gives each command a separate process group, to be signalled alone.
 * `fixed`: variables that override the saved state. `stale`: variables that are unset if they have these values.
 */
export function setUpScript(
  workdir: string,
  fixedVariables: Readonly<Record<string, string>>,
  stale: Readonly<Record<string, string>> = {},
): string {
  return `${OWN_BUILTIN}__agent_server_own_builtin
builtin shopt -u expand_aliases checkwinsize
builtin set -m +H +o history
builtin unset -v HISTFILE MAILCHECK || [[ 1 ]]
builtin declare -g PS1= PS2= || [[ 1 ]]
${reportFunctions(workdir)}${unsetStaleScript(stale)}${exportScript(fixedVariables)}builtin shopt -s expand_aliases
`
}

/** Sources a saved state; runs before the set-up, which overrides it. */
export function restoreScript(statePath: string, { withOptions }: { withOptions: boolean }): string {
  return `. ${quote(statePath)} ${withOptions ? 'options' : ''} </dev/null >/dev/null 2>&1 ${REPORT_FD}>&-\n`
}

export function exportScript(variables: Readonly<Record<string, string>>): string {
  const assignments = assign(variables)
  return assignments && `builtin export ${assignments} || [[ 1 ]]\n`
}

/** A different value was set by a user and stays. */
function unsetStaleScript(variables: Readonly<Record<string, string>>): string {
  return Object.entries(variables)
    .map(([name, value]) => `[[ \${${name}-} != ${quote(value)} ]] || builtin unset -v ${name} || [[ 1 ]]\n`)
    .join('')
}

export type CommandFiles = {
  readonly script: string
  /** Undefined: no input. */
  readonly stdin: string | undefined
  readonly stdout: string
  readonly stderr: string
}

/**
 * Sources the command, so that all its changes to the shell persist. `ownEnv` (its secrets) is in the environment of
 * the command and its processes, but not of the shell itself: they are always current, and never in the saved state.
 */
export function commandScript(files: CommandFiles, ownEnv: Readonly<Record<string, string>>): string {
  const redirections = `<${quote(files.stdin ?? '/dev/null')} >${quote(files.stdout)} 2>${quote(files.stderr)} ${REPORT_FD}>&-`
  const assignments = assign(ownEnv)
  // An assignment before a special builtin persists in the shell in POSIX mode; called this way, it is an ordinary
  // builtin.
  const source = assignments && `${assignments} `
  return `${source}builtin command . ${quote(files.script)} ${redirections}\n`
}

/** Must be the next line after the command: `$?` is its exit code. */
export function reportScript(token: string, lastBackgroundPid: string): string {
  return `\\__agent_server_report "$?" ${quote(lastBackgroundPid)} ${token}\n`
}

/**
 * Restores options from a saved state: disables those that a new shell enables, and enables the saved ones. One line,
 * and no `shopt -p` or `set +o`, which would write a line per option: bash needs a system call for each line.
 */
const RESTORE_OPTIONS = `if [[ $1 ]]; then \
eval "shopt -u \${BASHOPTS//:/ }; set +o \${SHELLOPTS//:/ +o }"; \
shopt -s %s; \
set -o %s; \
fi; \
shopt -u expand_aliases`

/**
 * Uses only builtins, and is safe under `set -eu` and any IFS. Sends first the report, for which the caller waits; then
 * the state for the next shell, which does not delay the caller. In the state, functions come last: those with the name
 * of a builtin would otherwise run instead of it, and their text is parsed with the options under which it was written.
 */
function reportFunctions(workdir: string): string {
  return `__agent_server_report() {
  __agent_server_own_builtin
  builtin local __lost=\${__agent_server_lost-} __new=
  [[ -z $__lost ]] || builtin unset -v __agent_server_lost
  [[ $PWD -ef . ]] || __agent_server_find_cwd
  [[ \${!-} == "$2" ]] || ! builtin kill -0 "\${!-}" 2>/dev/null || __new=yes
  {
    builtin printf '%s\\0' '' '${REPORT}'"$3" "$1" "$PWD" "$__lost" "\${!-}"
    builtin printf '%s\\n%q\\n' "$__new" "\${PATH-}"
    builtin declare -pi
    builtin declare -pn
    builtin printf '\\0'
  } >&${REPORT_FD} 2>/dev/null || [[ 1 ]]
  {
    builtin printf '%s\\0' '${STATE}'"$3"
    builtin declare -px
    builtin alias -p
    builtin printf 'cd -- %q || __agent_server_lost=%q; ${RESTORE_OPTIONS}\\n' "$PWD" "$PWD" "\${BASHOPTS//:/ }" "\${SHELLOPTS//:/ -o }"
    builtin shopt -p extglob
    builtin declare -pf
    builtin printf '\\0%s\\0' '${STATE_END}'"$3"
  } >&${REPORT_FD} 2>/dev/null || [[ 1 ]]
}
__agent_server_find_cwd() {
  builtin local __here=$PWD
  if builtin cd -Pe . && [[ $PWD -ef . ]] || builtin cd -- "$__here"; then
    [[ 1 ]]
  else
    __lost=$__here
    builtin cd -- ${quote(workdir)} || PWD=$__here
  fi
} >/dev/null 2>&1
`
}

function assign(variables: Readonly<Record<string, string>>): string {
  return Object.entries(variables)
    .filter(([name]) => isVariableName(name))
    .map(([name, value]) => `${name}=${quote(value)}`)
    .join(' ')
}

/** Quotes any text as one word. NUL cannot be in a word, nor in anything that is passed to a process. */
export function quote(text: string): string {
  return `'${text.replaceAll('\0', '').replaceAll("'", String.raw`'\''`)}'`
}
