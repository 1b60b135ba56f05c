/**
 * The command that a shell is started by, so that its limits hold before it can start anything: it enters the control
 * groups, takes its rlimits and its place in front of the out-of-memory killer, and becomes what it was told to start.
 */

/** By its whole name: the search path of the shells may begin with a directory that agents write in. */
export const SHELL = '/bin/sh'

export type EnterOptions = {
  /** Files to write a `0` to. A process that cannot enter does not start. */
  readonly doors?: readonly string[]
  readonly rlimits?: Rlimits
  /** Absolute path of nice(1), to give way to the server where no group does that. */
  readonly nice?: string | undefined
}

/** Soft and hard alike. What is absent stays as the server has it. */
export type Rlimits = {
  /** Of what a process has of its own and can write to, bytes. */
  readonly data?: number
  /** Of one file, bytes. */
  readonly fileSize?: number
  readonly openFiles?: number
  readonly processes?: number
}

/** Before the server's own 0, after which the kernel would choose by size alone. */
const OOM_SCORE = 500
const NICENESS = '10'
const BLOCK = 512

/** The letters are those of POSIX, but for that of processes: `u` in bash and busybox, `p` in dash. */
const SCRIPT = `ulimit -c 0
while [ "$1" != -- ]; do
  case $1 in
    /*) echo 0 >"$1" || exit 125 ;;
    u=*) ulimit -u "\${1#*=}" 2>/dev/null || ulimit -p "\${1#*=}" ;;
    *) ulimit "-\${1%%=*}" "\${1#*=}" ;;
  esac
  shift
done
shift
{ echo ${OOM_SCORE} >/proc/self/oom_score_adj; } 2>/dev/null
exec "$@"`

/** The arguments of `SHELL`. */
export function enterArguments({ doors = [], rlimits = {}, nice }: EnterOptions, argv: readonly string[]): string[] {
  const { data, fileSize, openFiles, processes } = rlimits
  const limits = [
    data !== undefined && `d=${Math.ceil(data / 1024)}`,
    fileSize !== undefined && `f=${Math.ceil(fileSize / BLOCK)}`,
    openFiles !== undefined && `n=${openFiles}`,
    processes !== undefined && `u=${processes}`,
  ].filter((limit) => limit !== false)
  const polite = nice === undefined ? [] : [nice, '-n', NICENESS]
  return ['-c', SCRIPT, 'enter-limits', ...limits, ...doors, '--', ...polite, ...argv]
}
