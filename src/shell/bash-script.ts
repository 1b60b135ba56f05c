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
exec ${REPORT_FD}>&${REPORT_STDIO_INDEX} ${REPORT_STDIO_INDEX}>&-
cd -P -- ${quote(workdir)}
shopt -u expand_aliases
unset __agent_server_fd OLDPWD
`
}

/**
 * Functions of the shell's own that restored state defines may be called as builtins are: `builtin`, `export`, `shopt`.
 * So the server's lines call builtins through `builtin`, and take away a function of that name first. Only in POSIX mode
 * is `unset` certain to be the builtin, and only an assignment is certain to switch that mode on. The options that it
 * changes are put back.
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
 * `-i` because a non-interactive bash dies with a foreground job that was interrupted; what else it brings (prompts,
 * history, mail checks) is switched off. `-m` gives each command a process group of its own, to be signalled alone.
 * `fixed`: variables that it has whatever its saved state says. `stale`: those that it loses if they have these values.
 */
export function setUpScript(
  workdir: string,
  fixed: Readonly<Record<string, string>>,
  stale: Readonly<Record<string, string>> = {},
): string {
  return `${OWN_BUILTIN}__agent_server_own_builtin
builtin shopt -u expand_aliases checkwinsize
builtin set -m +H +o history
builtin unset -v HISTFILE MAILCHECK || [[ 1 ]]
builtin declare -g PS1= PS2= || [[ 1 ]]
${reportFunctions(workdir)}${unsetStaleScript(stale)}${exportScript(fixed)}builtin shopt -s expand_aliases
`
}

/** Sources a saved state; comes before the set-up, which has the last word. */
export function restoreScript(statePath: string, { withOptions }: { withOptions: boolean }): string {
  return `. ${quote(statePath)} ${withOptions ? 'options' : ''} </dev/null >/dev/null 2>&1 ${REPORT_FD}>&-\n`
}

export function exportScript(variables: Readonly<Record<string, string>>): string {
  const assignments = assign(variables)
  return assignments && `builtin export ${assignments} || [[ 1 ]]\n`
}

/** Another value is somebody's own. */
function unsetStaleScript(variables: Readonly<Record<string, string>>): string {
  return Object.entries(variables)
    .map(([name, value]) => `[[ \${${name}-} != ${quote(value)} ]] || builtin unset -v ${name} || [[ 1 ]]\n`)
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
  const source = assignments && `${assignments} `
  return `${source}builtin command . ${quote(files.script)} ${redirections}\n`
}

/** Must be the next line after what it reports on: `$?` is the exit code. */
export function reportScript(token: string, lastBackgroundPid: string): string {
  return `\\__agent_server_report "$?" ${quote(lastBackgroundPid)} ${token}\n`
}

/**
 * Of a saved state: switches off what options a new shell has on, and on those that are named. One line, and no `shopt -p`
 * or `set +o`, which would write a line for each option there is: bash takes a system call for each line that it writes.
 */
const RESTORE_OPTIONS = `if [[ $1 ]]; then \
eval "shopt -u \${BASHOPTS//:/ }; set +o \${SHELLOPTS//:/ +o }"; \
shopt -s %s; \
set -o %s; \
fi; \
shopt -u expand_aliases`

/**
 * Builtins only, and safe under `set -eu` and any IFS. First the report, for which the caller waits; then the state to
 * start another shell from, which costs the caller nothing. In the state, functions come last: those named like a
 * builtin would else run in its place, and their text is read with the options that it was written under.
 */
function reportFunctions(workdir: string): string {
  return `__agent_server_report() {
  __agent_server_own_builtin
  builtin local __lost=\${__agent_server_lost-} __new=
  [[ -z $__lost ]] || builtin unset -v __agent_server_lost
  [[ $PWD -ef . ]] || __agent_server_find_cwd
  [[ \${!-} == "$2" ]] || ! builtin kill -0 "\${!-}" 2>/dev/null || __new=yes
  builtin printf '%s\\0' '' '${REPORT}'"$3" "$1" "$PWD" "$__lost" "\${!-}" "$__new" >&${REPORT_FD}
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
    .filter(([name]) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name))
    .map(([name, value]) => `${name}=${quote(value)}`)
    .join(' ')
}

/** As one word, whatever it holds. NUL cannot be in a word, nor in anything that reaches a process. */
function quote(text: string): string {
  return `'${text.replaceAll('\0', '').replaceAll("'", String.raw`'\''`)}'`
}
