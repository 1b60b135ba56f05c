/** Reads one process or one tree of /proc: what it is, who started it, and how to signal exactly the one that was meant. */
import { readFileSync, readdirSync } from 'node:fs'

/** In the flags of proc(5): a thread of the kernel, which was not started by a program. */
const PF_KTHREAD = 0x0020_0000

export type ProcessEntry = {
  readonly pid: number
  /** Of its executable; after a fork still that of its parent. */
  readonly name: string
  readonly parentId: number
  readonly groupId: number
  /** As proc(5) has it: `R`, `S`, `D`, … */
  readonly state: string
  readonly isZombie: boolean
  readonly isKernelThread: boolean
  /** Clock ticks since boot. With the pid it names one process for ever; a pid alone is used again. */
  readonly startTime: string
}

/** `undefined` when there is no such process. */
export function findProcess(pid: number): ProcessEntry | undefined {
  const stat = readProc(`/proc/${pid}/stat`)
  if (stat === undefined) return undefined
  // proc(5): `pid (comm) state ppid pgrp …`; comm may hold spaces and parentheses, so count from its last one.
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

/** What it was started with, arguments separated by spaces; its name, of one that has none. */
export function commandLineOf({ pid, name }: ProcessEntry): string {
  return readProc(`/proc/${pid}/cmdline`)?.replace(/\0+$/, '').replaceAll('\0', ' ') || `[${name}]`
}

/** Linux tells user space all times in hundredths of a second. */
const TICKS_PER_SECOND = 100

/** Unix time, milliseconds. */
export function startedAt({ startTime }: ProcessEntry): number {
  const bootedAt = Number(/^btime (\d+)$/m.exec(readProc('/proc/stat') ?? '')?.[1] ?? 0)
  return (bootedAt + Number(startTime) / TICKS_PER_SECOND) * 1000
}

/** All processes below `pid`, parents first, without those for which `skip` holds and what is below them. */
export function findDescendants(pid: number, skip: (entry: ProcessEntry) => boolean = () => false): ProcessEntry[] {
  const found: ProcessEntry[] = []
  const pending = childPids(pid)
  for (let next = pending.shift(); next !== undefined; next = pending.shift()) {
    const entry = findProcess(next)
    if (!entry || skip(entry)) continue
    found.push(entry)
    pending.push(...childPids(next))
  }
  return found
}

/** Whether that very process runs still; one that nobody has waited for does not. */
export function isAlive(entry: ProcessEntry): boolean {
  const now = findProcess(entry.pid)
  return now !== undefined && now.startTime === entry.startTime && !now.isZombie
}

/** Signals that very process; one that took over its pid is left alone. Answers whether there was one to signal. */
export function signalProcess(entry: ProcessEntry, signal: NodeJS.Signals): boolean {
  return isAlive(entry) && sendSignal(entry.pid, signal)
}

/** Signals the whole group that `member` is in. */
export function signalGroup(member: ProcessEntry, signal: NodeJS.Signals): boolean {
  // 0 is a group outside of our PID namespace, and as an argument of kill(2) it would be our own.
  if (member.groupId <= 1) return signalProcess(member, signal)
  return isAlive(member) && sendSignal(-member.groupId, signal)
}

/** The process so many generations below `pid`, each time the first child; undefined when there is none (yet). */
export function findFirstborn(pid: number, generations: number): ProcessEntry | undefined {
  if (generations === 0) return findProcess(pid)
  // proc(5): in the order of their start; what comes in from a process that has ended is put behind them.
  const [first] = childPids(pid)
  return first === undefined ? undefined : findFirstborn(first, generations - 1)
}

/** The process at or below `pid` that calls itself `ownPid`: in a sandbox it counts in a PID namespace of its own. */
export function findByOwnPid(pid: number, ownPid: string): number | undefined {
  const candidates = [pid, ...findDescendants(pid).map((entry) => entry.pid)]
  // proc_pid_status(5): the pid in each namespace, the innermost last. A kernel without PID namespaces has no such line.
  return candidates.find((candidate) => {
    const status = readProc(`/proc/${candidate}/status`)
    return status !== undefined && (/^NSpid:.*?(\d+)$/m.exec(status)?.[1] ?? String(candidate)) === ownPid
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
    return [] // The process is gone.
  }
}

/** `undefined` also when the process vanishes while it is read (ESRCH). */
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
    return false // It ended in between, or is not ours to signal.
  }
}
