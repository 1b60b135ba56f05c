/**
 * Finds where the server may create control groups: below its own, in the hierarchy of version 2, or in those of
 * version 1. Reads what the kernel reports about this process; changes nothing.
 */
import { accessSync, constants, readFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'

export const CONTROLLERS = ['memory', 'pids', 'cpu', 'io'] as const
export type Controller = (typeof CONTROLLERS)[number]

/** A directory in which groups can be created, and the resources that can be limited there. */
export type CgroupRoot = {
  readonly version: 1 | 2
  readonly directory: string
  readonly controllers: ReadonlySet<Controller>
}

/** The group that the server moves itself to if its original group must contain no process. */
export const SERVER_LEAF = 'agent-server'

type Files = { readonly cgroup: string; readonly mountinfo: string }

/**
 * Returns the place in version 2, if the server's own group is writable there. Its controllers may not be enabled yet.
 */
export function findRootV2(files: Files = readFiles()): CgroupRoot | undefined {
  const own = /^0::(.*)$/m.exec(files.cgroup)?.[1]
  const mount = mountsIn(files.mountinfo).find(({ type }) => type === 'cgroup2')
  const directory = own === undefined || !mount ? undefined : locate(mount, own)
  if (directory === undefined) return undefined
  // A server started by a server that had moved is in that one's leaf group.
  const place = basename(directory) === SERVER_LEAF ? dirname(directory) : directory
  const controllers = new Set(namesIn(readIfAny(join(place, 'cgroup.controllers'))))
  const isOurs = isWritable(place) && isWritable(join(place, 'cgroup.procs'))
  return isOurs && controllers.size > 0 ? { version: 2, directory: place, controllers } : undefined
}

/** Returns one place for each hierarchy of version 1 whose directory for this process is writable. */
export function findRootsV1(files: Files = readFiles()): CgroupRoot[] {
  const mounts = mountsIn(files.mountinfo).filter(({ type }) => type === 'cgroup')
  return files.cgroup.split('\n').flatMap((line): CgroupRoot[] => {
    const [, hierarchy, names = '', own] = /^(\d+):([^:]*):(.*)$/.exec(line) ?? []
    const controllers = new Set(namesIn(names.replace('blkio', 'io')))
    if (hierarchy === '0' || own === undefined || controllers.size === 0) return []
    const mount = mounts.find(({ options }) => names.split(',').every((name) => options.includes(name)))
    const directory = mount && locate(mount, own)
    return directory !== undefined && isWritable(directory) ? [{ version: 1, directory, controllers }] : []
  })
}

/** How many processes and threads a group may have, and has. */
export type PidsLimit = { readonly max: number; readonly current: number }

/**
 * Returns the limits of processes of the groups that this process is in: its own, and those above it as far as they are
 * mounted. Groups without a limit are left out.
 */
export function pidsLimits(files: Files = readFiles()): PidsLimit[] {
  const mounts = mountsIn(files.mountinfo)
  return files.cgroup.split('\n').flatMap((line) => {
    const [, hierarchy, names = '', own = ''] = /^(\d+):([^:]*):(.*)$/.exec(line) ?? []
    const mount = mounts.find(({ type, options }) =>
      hierarchy === '0' ? type === 'cgroup2' : names.split(',').includes('pids') && options.includes('pids'),
    )
    return mount ? groupsAbove(mount, own).flatMap(readPidsLimit) : []
  })
}

function readPidsLimit(group: string): PidsLimit[] {
  const [max = NaN, current = NaN] = ['pids.max', 'pids.current'].map((file) =>
    Number.parseInt(readIfAny(join(group, file)), 10),
  )
  // `max` is not a number.
  return Number.isNaN(max) ? [] : [{ max, current }]
}

/** Returns the directory of the group `own` and those of the groups that contain it. */
function groupsAbove(mount: Mount, own: string): string[] {
  const groups: string[] = []
  for (let group = locate(mount, own); group?.startsWith(mount.at); group = dirname(group)) {
    groups.push(group)
    if (group === mount.at || group === dirname(group)) break
  }
  return groups
}

function readFiles(): Files {
  return { cgroup: readIfAny('/proc/self/cgroup'), mountinfo: readIfAny('/proc/self/mountinfo') }
}

export function readIfAny(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

type Mount = { readonly root: string; readonly at: string; readonly type: string; readonly options: readonly string[] }

/** proc_pid_mountinfo(5): `id parent major:minor root mount-point options … - type source super-options`. */
function mountsIn(mountinfo: string): Mount[] {
  return mountinfo.split('\n').flatMap((line) => {
    const [before = '', after = ''] = line.split(' - ')
    const [, , , root, at] = before.split(' ')
    const [type, , options = ''] = after.split(' ')
    if (root === undefined || at === undefined || type === undefined) return []
    return [{ root, at: at.replaceAll(String.raw`\040`, ' '), type, options: options.split(',') }]
  })
}

/** Returns the directory of the group `own`; undefined if the mount does not contain it. */
function locate({ root, at }: Mount, own: string): string | undefined {
  const way = relative(root, own)
  return way === '..' || way.startsWith('../') ? undefined : join(at, way)
}

/** Returns the controllers that are relevant here. */
function namesIn(text: string): Controller[] {
  const names = new Set(text.trim().split(/[\s,]+/))
  return CONTROLLERS.filter((name) => names.has(name))
}

export function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK)
    return true
  } catch {
    return false
  }
}
