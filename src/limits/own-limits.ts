/** The limits that the operating system sets to the server itself, and those of them that are too low. */
import { readIfAny } from './cgroup-roots.ts'

type OwnLimit = {
  /** In `/proc/self/limits`. */
  readonly name: string
  readonly least: number
  readonly advice: string
}

const GIB = 1024 ** 3

const NEEDED: readonly OwnLimit[] = [
  {
    name: 'Max address space',
    least: 4 * GIB,
    advice:
      'Node reserves more than it uses and ends without notice when it gets no more: set it to unlimited (ulimit -v, LimitAS=), and limit the memory with a cgroup (MemoryMax=)',
  },
  {
    name: 'Max open files',
    least: 4096,
    advice:
      'a conversation with a running shell takes up to 13: set the hard limit to 16384 or more (ulimit -Hn, LimitNOFILE=)',
  },
]

/** Returns the limit in force of this process, or undefined if there is none. */
export function ownLimit(name: string): number | undefined {
  const lines = readIfAny('/proc/self/limits').split('\n')
  const values = lines.find((line) => line.startsWith(name))?.slice(name.length)
  // The soft limit, which Node has raised to the hard one for open files.
  const limit = Number.parseInt(values ?? '', 10)
  return Number.isNaN(limit) ? undefined : limit
}

/** Returns a text for each limit that is too low: what it is, what it causes, and what to do. */
export function warningsOfOwnLimits(): string[] {
  return NEEDED.flatMap(({ name, least, advice }) => {
    const limit = ownLimit(name)
    return limit === undefined || limit >= least ? [] : [`the limit "${name}" of the server is ${limit}; ${advice}`]
  })
}
