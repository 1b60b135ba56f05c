/**
 * Counts the processes below a shell and their memory, if no control group does: one scan of /proc for all
 * conversations, in slices, and none while the machine as a whole is below every limit.
 */
import { readdir, statfs } from 'node:fs/promises'
import { readFileSync } from 'node:fs'
import { endianness } from 'node:os'
import { setImmediate as yieldToLoop } from 'node:timers/promises'
import { lazily } from '../lib/lazily.ts'
import { readIfAny } from './cgroup-roots.ts'

/** Processes read before other work gets a turn. */
const SLICE = 200
const TMPFS = 0x01021994
/** The directories in which a sandbox may have file systems in memory. */
const MEMORY_DIRECTORIES = ['dev/shm', 'tmp', 'var/tmp', 'run']

export type ProcessSample = {
  readonly pid: number
  readonly parentId: number
  readonly sessionId: number
  readonly threads: number
  readonly residentBytes: number
}

export type ProcessSamples = ReadonlyMap<number, ProcessSample>

/** The load of the whole machine: an upper bound for every conversation. */
export type SystemLoad = { readonly threads: number; readonly usedMemoryBytes: number }

export function readSystemLoad(): SystemLoad {
  const memory = readIfAny('/proc/meminfo')
  // oxlint-disable-next-line regexp/built -- the file is of Linux
  const kilobytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(memory)?.[1] ?? 0)
  return {
    // proc_loadavg(5): the fourth field is `running/all`.
    threads: Number(/\/(\d+) /.exec(readIfAny('/proc/loadavg'))?.[1] ?? Infinity),
    usedMemoryBytes: (kilobytes('MemTotal') - kilobytes('MemAvailable')) * 1024,
  }
}

export async function sampleProcesses(): Promise<ProcessSamples> {
  const samples = new Map<number, ProcessSample>()
  const pids = (await readdir('/proc')).map(Number).filter(Number.isInteger)
  for (const [at, pid] of pids.entries()) {
    if (at % SLICE === SLICE - 1) await yieldToLoop()
    const sample = sampleOf(pid)
    if (sample) samples.set(pid, sample)
  }
  return samples
}

/** Returns the descendants of `roots`, the roots themselves, and the processes in a session that one of them leads. */
export function membersOf(samples: ProcessSamples, roots: readonly number[]): ProcessSample[] {
  const children = Map.groupBy(samples.values(), ({ parentId }) => parentId)
  const leaders = new Set(roots)
  const inSessions = samples.values().filter(({ sessionId }) => leaders.has(sessionId))
  const foundSamples = new Map<number, ProcessSample>()
  const pending = [...roots.flatMap((root) => samples.get(root) ?? []), ...inSessions]
  for (let next = pending.pop(); next; next = pending.pop()) {
    if (foundSamples.has(next.pid)) continue
    foundSamples.set(next.pid, next)
    pending.push(...(children.get(next.pid) ?? []))
  }
  return [...foundSamples.values()]
}

/**
 * Returns their total memory. Counts shared pages only once if that decides whether it exceeds `limit`, because it
 * takes longer.
 */
export async function memoryOf(members: readonly ProcessSample[], limit: number): Promise<number> {
  const upperBound = members.reduce((sum, { residentBytes }) => sum + residentBytes, 0)
  if (upperBound <= limit) return upperBound
  let exact = 0
  for (const [at, { pid, residentBytes }] of members.entries()) {
    if (at % SLICE === SLICE - 1) await yieldToLoop()
    const proportional = /^Pss:\s+(\d+) kB$/m.exec(readIfAny(`/proc/${pid}/smaps_rollup`))?.[1]
    exact += proportional === undefined ? residentBytes : Number(proportional) * 1024
  }
  return exact
}

/** Returns the bytes of files in memory in the sandbox of `pid`; they belong to no process. */
export async function memoryFilesOf(pid: number): Promise<number> {
  const sizes = MEMORY_DIRECTORIES.map(async (directory) => {
    const { type, blocks, bfree, bsize } = await statfs(`/proc/${pid}/root/${directory}`)
    return type === TMPFS ? (blocks - bfree) * bsize : 0
  })
  const knownSizes = await Promise.allSettled(sizes)
  return knownSizes.reduce((sum, size) => sum + (size.status === 'fulfilled' ? size.value : 0), 0)
}

function sampleOf(pid: number): ProcessSample | undefined {
  const stat = readIfAny(`/proc/${pid}/stat`)
  if (stat === '') return undefined
  // proc_pid_stat(5): the name, which may contain anything, ends at the last parenthesis.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return {
    pid,
    parentId: Number(fields[1]),
    sessionId: Number(fields[3]),
    threads: Number(fields[17]),
    residentBytes: Number(fields[21]) * pageSize(),
  }
}

const AT_PAGESZ = 6n
const DEFAULT_PAGE_SIZE = 4096

/** Reads the auxiliary vector of this process: pairs of 64-bit numbers. */
const pageSize = lazily(() => {
  const vector = readFileSync('/proc/self/auxv')
  const read = (at: number) => (endianness() === 'LE' ? vector.readBigUInt64LE(at) : vector.readBigUInt64BE(at))
  for (let at = 0; at + 16 <= vector.length; at += 16) if (read(at) === AT_PAGESZ) return Number(read(at + 8))
  return DEFAULT_PAGE_SIZE
})
