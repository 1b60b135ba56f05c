/**
 * Creates the control groups of conversations, after a test at startup that it can, and removes those of earlier
 * servers.
 */
import { createHash } from 'node:crypto'
import { readdirSync, rmdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { HostEnvironment, runProgram } from '../lib/start-process.ts'
import { makeDirectoriesSync } from '../files/make-directories.ts'
import type { Bound } from '../contract/limits/resource-limits.ts'
import { Cgroup, removeGroup } from './cgroup.ts'
import type { CgroupRoot, Controller } from './cgroup-roots.ts'
import { findRootsV1, findRootV2, readIfAny, SERVER_LEAF } from './cgroup-roots.ts'
import { SHELL, enterArguments } from './enter-limits.ts'
import type { LimitValues } from '../shell/limit-values.ts'

/**
 * The file in the data directory that says where groups for this data were created, one directory per line. The next
 * server may use other places.
 */
const RECORD = 'cgroups'
/** The server's weight relative to its conversations. */
const SERVER_WEIGHT = '1000'
const TRIAL_TIMEOUT_MS = 5000
/** Age of a group that is still or again empty. */
const ABANDONED_AFTER_MS = 10 * 60_000
const MOVE_TRIES = 5
const MOVE_PAUSE_MS = 20

export interface CgroupFactory {
  readonly enforcedBy: (controller: Controller) => Exclude<Bound, 'watchdog'>
  /** The ids of conversations whose groups still had processes of an earlier server; those have been killed. */
  readonly ended: readonly string[]
  /**
   * Creates a group for one conversation; returns undefined if groups are not available. Throws if this one cannot be
   * created.
   */
  make(conversationId: string, limits: LimitValues): Cgroup | undefined
}

/** Call it only with the lock on `dataDir`: no group of this data belongs to a running server. */
export async function createCgroupFactory(dataDir: string): Promise<CgroupFactory> {
  const prefix = `${SERVER_LEAF}-${createHash('sha256').update(dataDir).digest('hex').slice(0, 12)}-`
  const places = await choosePlaces(prefix)
  const endedGroups = await sweep(dataDir, prefix, places)
  let createdCount = 0
  return {
    ended: endedGroups,
    enforcedBy(controller) {
      const place = places.find(({ controllers }) => controllers.has(controller))
      return place ? (place.version === 2 ? 'cgroup_v2' : 'cgroup_v1') : 'none'
    },
    make(conversationId, limits) {
      if (places.length === 0) return undefined
      const group = new Cgroup(places, `${prefix}${conversationId}-${++createdCount}`, limits)
      group.make()
      return group
    },
  }
}

/** Version 2 is used for the controllers it has; version 1 for the rest. */
async function choosePlaces(prefix: string): Promise<CgroupRoot[]> {
  const unifiedRoot = await enablePlaceV2()
  const takenControllers = unifiedRoot?.controllers ?? new Set()
  const others = findRootsV1()
    .map((place) => ({ ...place, controllers: place.controllers.difference(takenControllers) }))
    .filter(({ controllers }) => controllers.size > 0)
  const foundRoots = [...(unifiedRoot ? [unifiedRoot] : []), ...others]
  // Nearly always all or none work; otherwise each is tested with a process.
  if (foundRoots.length === 0 || (await canEnter(foundRoots, prefix))) return foundRoots
  const provenEntries = await Promise.all(foundRoots.map((place, at) => canEnter([place], `${prefix}${at}-`)))
  return foundRoots.filter((_, at) => provenEntries[at])
}

/** Returns the place with the controllers that groups below it can use, and enables missing ones. */
async function enablePlaceV2(): Promise<CgroupRoot | undefined> {
  const place = findRootV2()
  if (!place) return undefined
  const control = join(place.directory, 'cgroup.subtree_control')
  const enabledControllers = () => place.controllers.intersection(new Set(readIfAny(control).trim().split(' ')))
  const before = enabledControllers()
  // Move first: while it has processes, some controllers could be enabled, but no group below could be entered.
  if (before.size < place.controllers.size && isBelowRoot(place.directory) && !(await moveToLeaf(place.directory))) {
    moveBack(place.directory)
    return before.size > 0 ? { ...place, controllers: before } : undefined
  }
  // Enable them one by one: the kernel refuses a whole line if it cannot enable one of them.
  for (const controller of place.controllers) writeIfPossible(control, `+${controller}`)
  return enabledControllers().size > 0 ? { ...place, controllers: enabledControllers() } : undefined
}

/** The root group may contain processes in addition to groups with limits. It has no type. */
const isBelowRoot = (directory: string) => readIfAny(join(directory, 'cgroup.type')) !== ''

/**
 * Moves the server, its parents and its children. Does nothing if the group contains other processes: it was not
 * created for the server then. Returns true if the group is empty.
 */
async function moveToLeaf(directory: string): Promise<boolean> {
  const leaf = join(directory, SERVER_LEAF)
  for (let tries = 0; tries < MOVE_TRIES; tries++) {
    const pids = pidsIn(directory)
    if (pids.length === 0) return true
    const ours = ancestorsOf(process.pid)
    if (!pids.every((pid) => ours.has(pid) || ancestorsOf(pid).has(process.pid))) return false
    makeDirectoriesSync(leaf)
    for (const pid of pids) writeIfPossible(join(leaf, 'cgroup.procs'), String(pid))
    writeIfPossible(join(leaf, 'cpu.weight'), SERVER_WEIGHT)
    // One of them may have started another process meanwhile.
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

/** Includes the process itself. */
function ancestorsOf(pid: number): Set<number> {
  const foundPids = new Set<number>()
  for (let next = pid; next > 0 && !foundPids.has(next);) {
    foundPids.add(next)
    next = Number(/^PPid:\s+(\d+)$/m.exec(readIfAny(`/proc/${next}/status`))?.[1] ?? 0)
  }
  return foundPids
}

/** Creates a group with limits, lets a process enter it, and removes it. */
async function canEnter(places: readonly CgroupRoot[], prefix: string): Promise<boolean> {
  const group = new Cgroup(places, `${prefix}trial`, { memoryBytes: 64 * 1024 ** 2, processes: 16 })
  try {
    group.make()
    return await succeeds(enterArguments({ doors: group.doors }, ['true']))
  } catch {
    return false // the directory is writable, but its files are not
  } finally {
    await group.end()
  }
}

function succeeds(args: readonly string[]): Promise<boolean> {
  const ran = runProgram(SHELL, args, { env: HostEnvironment.plain, timeout: TRIAL_TIMEOUT_MS })
  return ran.then(
    () => true,
    () => false,
  )
}

/**
 * Removes the groups of a killed server, here and where it created them. Returns the conversations that still had
 * processes.
 */
async function sweep(dataDir: string, prefix: string, places: readonly CgroupRoot[]): Promise<string[]> {
  const record = join(dataDir, RECORD)
  const now = places.map(({ version, directory }) => `${version} ${directory}`)
  const before = readIfAny(record).split('\n').filter(Boolean)
  if (now.join('\n') !== before.join('\n'))
    writeFileSync(record, now.map((line) => `${line}\n`).join(''), { mode: 0o600 })
  for (const { directory } of places) removeAbandoned(directory)
  const foundNames = await Promise.all([...new Set([...before, ...now])].map((line) => sweepPlace(line, prefix)))
  return [...new Set(foundNames.flat())]
}

/** Removes empty groups of killed servers whose data is gone. A group of a running server is recreated on demand. */
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
  const leftNames = namesIn(directory).filter((name) => name.startsWith(prefix))
  const groups = leftNames.map((name) => ({ name, group: new Cgroup([{ version, directory, controllers }], name) }))
  const usedGroups = groups.filter(({ group }) => group.pids.length > 0)
  await Promise.all(groups.map(({ group }) => group.end()))
  return usedGroups.map(({ name }) => name.slice(prefix.length).replace(/-\d+$/, ''))
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch {
    return [] // it is gone, with everything in it
  }
}

function writeIfPossible(path: string, text: string): void {
  try {
    writeFileSync(path, text)
  } catch {
    // The caller checks the result.
  }
}

function removeIfPossible(directory: string): void {
  try {
    rmdirSync(directory)
  } catch {
    // It was never created.
  }
}
