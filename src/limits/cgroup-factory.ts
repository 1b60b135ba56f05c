/** Makes the control groups of conversations, once it has proved at start that it can, and removes those of earlier servers. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, rmdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Bound } from '../contract/resource-limits.ts'
import { Cgroup, removeGroup } from './cgroup.ts'
import type { CgroupRoot, Controller } from './cgroup-roots.ts'
import { findRootsV1, findRootV2, readIfAny, SERVER_LEAF } from './cgroup-roots.ts'
import { SHELL, enterArguments } from './enter-limits.ts'
import type { LimitValues } from '../shell/limit-values.ts'

/** In the data directory: where groups of this data were made, one directory a line. The next server may have other places. */
const RECORD = 'cgroups'
/** The server's weight beside its conversations. */
const SERVER_WEIGHT = '1000'
const TRIAL_TIMEOUT_MS = 5000
/** Of a group that nothing has entered since it was made, or that is empty again. */
const ABANDONED_AFTER_MS = 10 * 60_000
const MOVE_TRIES = 5
const MOVE_PAUSE_MS = 20

export interface CgroupFactory {
  readonly enforcedBy: (controller: Controller) => Exclude<Bound, 'watchdog'>
  /** The ids of conversations of which an earlier server had left processes in their groups; those are dead. */
  readonly ended: readonly string[]
  /** A group of its own, for one conversation; nothing where none can be made at all. Throws when this one cannot. */
  make(conversationId: string, limits: LimitValues): Cgroup | undefined
}

/** For who holds the lock on `dataDir`: no group of this data belongs to a server that lives. */
export async function createCgroupFactory(dataDir: string): Promise<CgroupFactory> {
  const prefix = `${SERVER_LEAF}-${createHash('sha256').update(dataDir).digest('hex').slice(0, 12)}-`
  const places = await choosePlaces(prefix)
  const ended = await sweep(dataDir, prefix, places)
  let made = 0
  return {
    ended,
    enforcedBy(controller) {
      const place = places.find(({ controllers }) => controllers.has(controller))
      return place ? (place.version === 2 ? 'cgroup_v2' : 'cgroup_v1') : 'none'
    },
    make(conversationId, limits) {
      if (places.length === 0) return undefined
      const group = new Cgroup(places, `${prefix}${conversationId}-${++made}`, limits)
      group.make()
      return group
    },
  }
}

/** Version 2 decides for what it has; version 1 is for the rest. */
async function choosePlaces(prefix: string): Promise<CgroupRoot[]> {
  const unified = await enablePlaceV2()
  const taken = unified?.controllers ?? new Set()
  const others = findRootsV1()
    .map((place) => ({ ...place, controllers: place.controllers.difference(taken) }))
    .filter(({ controllers }) => controllers.size > 0)
  const found = [...(unified ? [unified] : []), ...others]
  // Nearly always all or none; only else is it worth a process for each.
  if (found.length === 0 || (await canEnter(found, prefix))) return found
  const proved = await Promise.all(found.map((place, at) => canEnter([place], `${prefix}${at}-`)))
  return found.filter((_, at) => proved[at])
}

/** With the controllers that groups below it can use: enabled now, where they were not. */
async function enablePlaceV2(): Promise<CgroupRoot | undefined> {
  const place = findRootV2()
  if (!place) return undefined
  const control = join(place.directory, 'cgroup.subtree_control')
  const enabled = () => place.controllers.intersection(new Set(readIfAny(control).trim().split(' ')))
  const before = enabled()
  // First of all: with processes in it, some controllers could be enabled, but no group below could be entered then.
  if (before.size < place.controllers.size && isBelowRoot(place.directory) && !(await moveToLeaf(place.directory))) {
    moveBack(place.directory)
    return before.size > 0 ? { ...place, controllers: before } : undefined
  }
  // One by one: a kernel refuses all of a line for one that it cannot enable.
  for (const controller of place.controllers) writeIfPossible(control, `+${controller}`)
  return enabled().size > 0 ? { ...place, controllers: enabled() } : undefined
}

/** The root of all groups may have processes, and groups with limits beside them. It has no type. */
const isBelowRoot = (directory: string) => readIfAny(join(directory, 'cgroup.type')) !== ''

/**
 * Moves the server, who started it and what it has started. Not when others are in the group: it was not made for the
 * server then. Answers whether the group is empty.
 */
async function moveToLeaf(directory: string): Promise<boolean> {
  const leaf = join(directory, SERVER_LEAF)
  for (let tries = 0; tries < MOVE_TRIES; tries++) {
    const pids = pidsIn(directory)
    if (pids.length === 0) return true
    const ours = ancestorsOf(process.pid)
    if (!pids.every((pid) => ours.has(pid) || ancestorsOf(pid).has(process.pid))) return false
    mkdirSync(leaf, { recursive: true })
    for (const pid of pids) writeIfPossible(join(leaf, 'cgroup.procs'), String(pid))
    writeIfPossible(join(leaf, 'cpu.weight'), SERVER_WEIGHT)
    // One of them may have started another meanwhile.
    await delay(MOVE_PAUSE_MS)
  }
  return pidsIn(directory).length === 0
}

function moveBack(directory: string): void {
  const leaf = join(directory, SERVER_LEAF)
  for (const pid of pidsIn(leaf)) writeIfPossible(join(directory, 'cgroup.procs'), String(pid))
  removeIfPossible(leaf)
}

const pidsIn = (directory: string) => readIfAny(join(directory, 'cgroup.procs')).split('\n').filter(Boolean).map(Number)

/** With itself. */
function ancestorsOf(pid: number): Set<number> {
  const found = new Set<number>()
  for (let next = pid; next > 0 && !found.has(next);) {
    found.add(next)
    next = Number(/^PPid:\s+(\d+)$/m.exec(readIfAny(`/proc/${next}/status`))?.[1] ?? 0)
  }
  return found
}

/** Makes a group with limits, has a process enter it, and removes it. */
async function canEnter(places: readonly CgroupRoot[], prefix: string): Promise<boolean> {
  const group = new Cgroup(places, `${prefix}trial`, { memoryBytes: 64 * 1024 ** 2, processes: 16 })
  try {
    group.make()
    return await succeeds(enterArguments({ doors: group.doors }, ['true']))
  } catch {
    return false // There are rights to the directory, but not to what is in it.
  } finally {
    await group.end()
  }
}

function succeeds(args: readonly string[]): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  execFile(SHELL, args, { env: {}, timeout: TRIAL_TIMEOUT_MS }, (error) => resolve(!error))
  return promise
}

/** What a server that was killed has left, here and where it made its groups. Answers whose processes there were. */
async function sweep(dataDir: string, prefix: string, places: readonly CgroupRoot[]): Promise<string[]> {
  const record = join(dataDir, RECORD)
  const now = places.map(({ version, directory }) => `${version} ${directory}`)
  const before = readIfAny(record).split('\n').filter(Boolean)
  if (now.join('\n') !== before.join('\n'))
    writeFileSync(record, now.map((line) => `${line}\n`).join(''), { mode: 0o600 })
  for (const { directory } of places) removeAbandoned(directory)
  const found = await Promise.all([...new Set([...before, ...now])].map((line) => sweepPlace(line, prefix)))
  return [...new Set(found.flat())]
}

/** Empty groups of servers that were killed, and whose data is gone. One of a server that lives is made again when needed. */
function removeAbandoned(directory: string): void {
  const isOurs = (name: string) => /^agent-server-[0-9a-f]{12}-/.test(name)
  for (const path of namesIn(directory)
    .filter(isOurs)
    .map((name) => join(directory, name))) {
    const changedAt = statSync(path, { throwIfNoEntry: false })?.ctimeMs ?? Infinity
    if (Date.now() - changedAt > ABANDONED_AFTER_MS) removeGroup(path)
  }
}

async function sweepPlace(line: string, prefix: string): Promise<string[]> {
  const version = line.startsWith('2 ') ? 2 : 1
  const directory = line.slice(2)
  const controllers: ReadonlySet<Controller> = new Set(['pids'])
  const left = namesIn(directory).filter((name) => name.startsWith(prefix))
  const groups = left.map((name) => ({ name, group: new Cgroup([{ version, directory, controllers }], name) }))
  const used = groups.filter(({ group }) => group.pids.length > 0)
  await Promise.all(groups.map(({ group }) => group.end()))
  return used.map(({ name }) => name.slice(prefix.length).replace(/-\d+$/, ''))
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch {
    return [] // It is gone, with all that was in it.
  }
}

function writeIfPossible(path: string, text: string): void {
  try {
    writeFileSync(path, text)
  } catch {
    // Whoever needs it to have happened looks.
  }
}

function removeIfPossible(directory: string): void {
  try {
    rmdirSync(directory)
  } catch {
    // It was never made.
  }
}
