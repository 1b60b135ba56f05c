/** The limits that the operating system or the container sets to the server itself, and those that are too low. */
import { readdirSync } from 'node:fs'
import { isOutOfDescriptors } from '../lib/error-code.ts'
import { pidsLimits, readIfAny } from './cgroup-roots.ts'

type OwnLimit = {
  /** What is counted. */
  readonly what: string
  readonly read: (limits: string) => number | undefined
  readonly least: number
  readonly advice: string
}

const GIB = 1024 ** 3

const NEEDED: readonly OwnLimit[] = [
  {
    what: 'bytes of address space',
    read: (limits) => readLimit(limits, 'Max address space'),
    least: 4 * GIB,
    advice:
      'Node reserves more than it uses and ends without notice when it gets no more: set it to unlimited (ulimit -v, LimitAS=), and limit the memory with a cgroup (MemoryMax=)',
  },
  {
    what: 'open files',
    read: ownOpenFiles,
    least: 4096,
    advice:
      'a conversation with a running shell takes up to 13: set the hard limit to 16384 or more (ulimit -Hn, LimitNOFILE=)',
  },
  {
    what: 'processes and threads',
    read: ownProcesses,
    least: 512,
    advice:
      'the server takes 24, and each running shell 3 and its commands: set it to 4096 or more (--pids-limit, TasksMax=, ulimit -u)',
  },
]

/** Returns undefined without a limit. */
export function ownOpenFiles(limits = readLimits()): number | undefined {
  return readLimit(limits, 'Max open files')
}

/** Returns the limit of processes and threads of the server with all conversations; undefined without one. */
export function ownProcesses(limits = readLimits()): number | undefined {
  // The kernel does not count those of root.
  const ofUser = process.getuid?.() === 0 ? undefined : readLimit(limits, 'Max processes')
  const limit = Math.min(...pidsLimits().map(({ max }) => max), ofUser ?? Infinity)
  return Number.isFinite(limit) ? limit : undefined
}

/** The part of a limit above which processes are short. */
const HIGH_PROCESSES = 0.8

/** Returns true if the server and all conversations have nearly as many processes as a control group permits. */
export function areProcessesShort(limits = pidsLimits()): boolean {
  return limits.some(({ max, current }) => current >= max * HIGH_PROCESSES)
}

/** The part of the limit of open files above which they are short. */
const HIGH_FILES = 0.8

/** Returns true if the server has nearly as many files and connections open as `limit`. */
export function areFilesShort(limit: number | undefined): boolean {
  return limit !== undefined && countOpenFiles() >= limit * HIGH_FILES
}

/** Returns infinity if no descriptor is free to count them, and 0 without `/proc`. */
function countOpenFiles(): number {
  try {
    return readdirSync('/proc/self/fd').length
  } catch (error) {
    return isOutOfDescriptors(error) ? Infinity : 0
  }
}

/**
 * Returns a text for each limit that is too low: what it is, what it causes, and what to do. `limits` is the text of
 * `/proc/self/limits`.
 */
export function warningsOfOwnLimits(limits = readLimits()): string[] {
  return NEEDED.flatMap(({ what, read, least, advice }) => {
    const limit = read(limits)
    return limit === undefined || limit >= least ? [] : [`the server may have ${limit} ${what}; ${advice}`]
  })
}

/** The soft limit, which Node has raised to the hard one for open files. */
function readLimit(limits: string, name: string): number | undefined {
  const lines = limits.split('\n')
  const values = lines.find((line) => line.startsWith(name))?.slice(name.length)
  const limit = Number.parseInt(values ?? '', 10)
  return Number.isNaN(limit) ? undefined : limit
}

const readLimits = () => readIfAny('/proc/self/limits')
