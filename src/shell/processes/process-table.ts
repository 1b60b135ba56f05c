/** Reads one process or one process tree from /proc, and signals exactly the intended process. */
import { readFileSync, readdirSync } from 'node:fs'

/** The flag of a kernel thread in proc(5), which was not started by a program. */
const PF_KTHREAD = 0x0020_0000

export type ProcessEntry = {
  readonly pid: number
  /** Name of its executable; after a fork still the parent's. */
  readonly name: string
  readonly parentId: number
  readonly groupId: number
  /** The letter of proc(5): `R`, `S`, `D`, … */
  readonly state: string
  readonly isZombie: boolean
  readonly isKernelThread: boolean
  /** Clock ticks since boot. Together with the pid it identifies one process permanently; a pid alone is reused. */
  readonly startTime: string
}

/** Identifies a process: its id alone is used again. */
export const processKey = ({ pid, startTime }: ProcessEntry): string => `${pid} ${startTime}`

/** Returns `undefined` if there is no such process. */
export function findProcess(pid: number): ProcessEntry | undefined {
  const stat = readProc(`/proc/${pid}/stat`)
  if (stat === undefined) return undefined
  // proc(5): `pid (comm) state ppid pgrp …`; comm may contain spaces and parentheses, so count from the last one.
  const nameEnd = stat.lastIndexOf(')')
  const name = stat.slice(stat.indexOf('(') + 1, nameEnd)
  const fields = stat.slice(nameEnd + 2).split(' ')
  const [state = '', parentId, groupId] = fields
  const isZombie = state === 'Z'
  return {
    pid,
    name,
    parentId: Number(parentId),
    groupId: Number(groupId),
    state,
    isZombie,
    isKernelThread: (Number(fields[6]) & PF_KTHREAD) !== 0,
    startTime: fields[19] ?? '',
  }
}

/** Returns its arguments, separated by spaces; its name if it has none. */
export function commandLineOf({ pid, name }: ProcessEntry): string {
  const words = readProc(`/proc/${pid}/cmdline`)?.replace(/(?<!\0)\0+$/, '')
  return words?.replaceAll('\0', ' ') || `[${name}]`
}

/** Linux reports all times to user space in hundredths of a second. */
const TICKS_PER_SECOND = 100

/** Unix time in milliseconds. */
export function startedAt({ startTime }: ProcessEntry): number {
  const bootedAt = Number(/^btime (\d+)$/m.exec(readProc('/proc/stat') ?? '')?.[1] ?? 0)
  return (bootedAt + Number(startTime) / TICKS_PER_SECOND) * 1000
}

/** Returns all descendants of `pid`, parents first, except those for which `skip` is true and their descendants. */
export function findDescendants(pid: number, skip: (entry: ProcessEntry) => boolean = () => false): ProcessEntry[] {
  const foundEntries: ProcessEntry[] = []
  const pending = childPids(pid)
  for (let next = pending.shift(); next !== undefined; next = pending.shift()) {
    const entry = findProcess(next)
    if (!entry || skip(entry)) continue
    foundEntries.push(entry)
    pending.push(...childPids(next))
  }
  return foundEntries
}

/** True if exactly that process still runs; a zombie does not. */
export function isAlive(entry: ProcessEntry): boolean {
  const now = findProcess(entry.pid)
  return now !== undefined && now.startTime === entry.startTime && !now.isZombie
}

/** Signals exactly that process; never another one that reuses its pid. Returns true if it existed. */
export function signalProcess(entry: ProcessEntry, signal: NodeJS.Signals): boolean {
  return isAlive(entry) && sendSignal(entry.pid, signal)
}

/** Signals the whole group that `member` is in. */
export function signalGroup(member: ProcessEntry, signal: NodeJS.Signals): boolean {
  // 0 is a group outside our PID namespace, and as an argument of kill(2) it would be our own.
  if (member.groupId <= 1) return signalProcess(member, signal)
  return isAlive(member) && sendSignal(-member.groupId, signal)
}

/**
 * Returns the process this many generations below `pid`, each time the first child; undefined if there is none (yet).
 */
export function findFirstborn(pid: number, generations: number): ProcessEntry | undefined {
  if (generations === 0) return findProcess(pid)
  // proc(5): in order of start; children inherited from an ended process come last.
  const [first] = childPids(pid)
  return first === undefined ? undefined : findFirstborn(first, generations - 1)
}

/** Returns the process at or below `pid` with the pid `ownPid` inside its sandbox's PID namespace. */
export function findByOwnPid(pid: number, ownPid: string): number | undefined {
  const candidates = [pid, ...findDescendants(pid).map((entry) => entry.pid)]
  // proc_pid_status(5): the pid in each namespace, the innermost last. A kernel without PID namespaces has no such
  // line.
  return candidates.find((candidate) => {
    const status = readProc(`/proc/${candidate}/status`)
    return status !== undefined && (/^NSpid:(?:\t\d+){0,32}\t(\d+)$/m.exec(status)?.[1] ?? String(candidate)) === ownPid
  })
}

function childPids(pid: number): number[] {
  return taskIds(pid).flatMap((task) => {
    const children = readProc(`/proc/${pid}/task/${task}/children`) ?? ''
    return children.split(' ').filter(Boolean).map(Number)
  })
}

function taskIds(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`)
  } catch {
    return [] // the process is gone
  }
}

/** Returns `undefined` also if the process vanishes during the read (ESRCH). */
function readProc(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

function sendSignal(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(pid, signal)
    return true
  } catch {
    return false // it ended meanwhile, or we may not signal it
  }
}
