/**
 * The command that starts a shell with its limits, so that they apply before it can start anything: it enters the
 * control groups, sets its rlimits and its out-of-memory score, and execs the actual program.
 */

/** An absolute path: the shells' search path may begin with a directory that agents can write to. */
export const SHELL = '/bin/sh'

export type EnterOptions = {
  /** Files to write a `0` to. A process that cannot enter does not start. */
  readonly doors?: readonly string[]
  readonly rlimits?: Rlimits
  /** Absolute path of nice(1), for a lower priority than the server's if there is no control group. */
  readonly nice?: string | undefined
  /**
   * Lowers the priority of the session that the program is in, where the kernel divides processor time between sessions
   * (autogroup): there, a nice value counts within one session only.
   */
  readonly isPoliteSession?: boolean
}

/** Soft and hard limits. Missing ones are inherited from the server. */
export type Rlimits = {
  /** Private writable memory of a process, in bytes. */
  readonly data?: number
  /** Size of one file, in bytes. */
  readonly fileSize?: number
  readonly openFiles?: number
  readonly processes?: number
}

/** Higher than the server's 0, so that the kernel does not choose by size alone. */
const OOM_SCORE = 500
const NICENESS = '10'
const BLOCK = 512

/** The option letters are those of POSIX, except for processes: `u` in bash and busybox, `p` in dash. */
const SCRIPT = `ulimit -c 0
while [ "$1" != -- ]; do
  case $1 in
    /*) echo 0 >"$1" || exit 125 ;;
    g=*) { echo "\${1#*=}" >/proc/self/autogroup; } 2>/dev/null ;;
    u=*) ulimit -u "\${1#*=}" 2>/dev/null || ulimit -p "\${1#*=}" ;;
    *) ulimit "-\${1%%=*}" "\${1#*=}" ;;
  esac
  shift
done
shift
{ echo ${OOM_SCORE} >/proc/self/oom_score_adj; } 2>/dev/null
exec "$@"`

/** Returns the arguments of `SHELL`. */
export function enterArguments(
  { doors = [], rlimits = {}, nice, isPoliteSession = false }: EnterOptions,
  argv: readonly string[],
): string[] {
  const { data, fileSize, openFiles, processes } = rlimits
  const limits = [
    data !== undefined && `d=${Math.ceil(data / 1024)}`,
    fileSize !== undefined && `f=${Math.ceil(fileSize / BLOCK)}`,
    openFiles !== undefined && `n=${openFiles}`,
    processes !== undefined && `u=${processes}`,
    isPoliteSession && `g=${NICENESS}`,
  ].filter((limit) => limit !== false)
  const polite = nice === undefined ? [] : [nice, '-n', NICENESS]
  return ['-c', SCRIPT, 'enter-limits', ...limits, ...doors, '--', ...polite, ...argv]
}
