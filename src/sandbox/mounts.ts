/**
 * What a shell in the sandbox sees of the host's files, as arguments of bwrap(1): system files or all files read-only,
 * homes and the server's own files out of sight, and rights to write in the conversation's own places only.
 */
import { existsSync, mkdirSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, join, relative, sep } from 'node:path'
import type { OpenedPath } from '../files/opened-path.ts'
import { SYSTEM_DIRECTORIES, SYSTEM_FILES, systemMounts } from './system-files.ts'

/** What holds for all shells of a server. */
export type SandboxPlan = {
  /** The server's data, and where the workdirs of all conversations are. Made when they are not there. */
  readonly dataDir: string
  readonly workdirBase: string
  /** Files that hold keys. They need not exist. */
  readonly keyFiles: readonly string[]
  /** Of the server's user. */
  readonly home: string
  /** Search path of programs; what of it lies in the home is shown. */
  readonly path: string
  /** Other files and directories that a shell's environment names, such as certificates. */
  readonly named: readonly string[]
  /** Shown beside the system's files, and nothing else; undefined: all that is not hidden is shown. */
  readonly readable?: readonly string[] | undefined
}

/** A place of the host that is shown, under the name that programs have for it. `real` had no link in it at the start. */
export type ShownPlace = { readonly at: string; readonly real: string }

/** What is one conversation's own, held open. */
export type ShellPlaces = {
  readonly workdir: OpenedPath
  readonly visible: readonly OpenedPath[]
  readonly home: OpenedPath
  /** What it sees as /tmp. */
  readonly scratch: OpenedPath
  /** `shownPlaces`, as far as they are where they were at the start. */
  readonly shown: readonly { readonly at: string; readonly place: OpenedPath | undefined }[]
  /**
   * Has bwrap inherit a place; answers the number of the descriptor there, which is good for one mount. Undefined for a
   * bwrap that goes by paths. Only what is mounted is inherited: bwrap closes no other descriptor before the shell.
   */
  readonly inherit: ((place: OpenedPath) => number) | undefined
}

/** What no shell sees, for who works for the agent in the server's own process; it has to keep to the same. */
export function hiddenFromShells({
  dataDir,
  workdirBase,
  keyFiles,
  home,
}: Pick<SandboxPlan, 'dataDir' | 'workdirBase' | 'keyFiles' | 'home'>): string[] {
  return [dataDir, workdirBase, ...keyFiles, home, ...HOMES, SOCKETS, ...SCRATCH, '/proc', '/dev']
}

/** What a shell may read at most, for the same. */
export function readableByShells(readable: readonly string[]): string[] {
  return [...SYSTEM_DIRECTORIES, ...SYSTEM_FILES, ...readable]
}

type Mount = {
  readonly at: string
  readonly args: () => readonly string[]
  /** An empty directory, to be locked once everything in it has its place. */
  readonly isCover?: true
}

/**
 * Of the home, only what programs on the search path are known to need: everything else there is somebody's, and who
 * knows which of it is a key.
 */
export const TOOLCHAINS = ['.asdf', '.nvm', '.pyenv', '.rbenv', '.rustup', '.sdkman', '.volta', '.local/share/mise']

/** Sockets in here lead to whoever runs things for others: docker, systemd, the user's own session. */
const SOCKETS = '/run'
/** Where NixOS keeps its programs. */
const SYSTEM_PROGRAMS = '/run/current-system'
/**
 * Root writes there without any capability, and what `core_pattern` names runs outside of every sandbox. bwrap covers
 * other parts of /proc, but misses these.
 */
const KERNEL_SETTINGS = ['acpi', 'asound', 'fs', 'scsi', 'sys'].map((name) => `/proc/${name}`)
/**
 * Keys and addresses of the kernel's, and the memory of the sandbox's init: who writes there is no longer ended with the
 * server.
 */
const KERNEL_SECRETS = [
  'keys',
  'key-users',
  'kcore',
  'timer_list',
  'kpageflags',
  'kpagecount',
  'kpagecgroup',
  'vmallocinfo',
  'slabinfo',
  '1/mem',
  '1/task/1/mem',
].map((name) => `/proc/${name}`)
const SCRATCH = ['/tmp', '/var/tmp']
const HOMES = ['/home', '/root']

/**
 * What is shown of the homes, or by the operator's list. Found once, before there is any shell: an agent that works where
 * one of them lies could else have a link there to what it wants to see.
 */
export function shownPlaces(plan: SandboxPlan): ShownPlace[] {
  if (plan.readable) return plan.readable.flatMap(shownAt)
  const homes = homesOf(plan)
  const programs = plan.path.split(':').filter((directory) => directory.startsWith(sep))
  const wanted = [...TOOLCHAINS.map((name) => join(plan.home, name)), ...programs, ...plan.named]
  // A whole home on the search path is not shown for that.
  return wanted
    .flatMap(shownAt)
    .filter(({ at }) => homes.some((each) => isBelow(at, each)) && !homes.some((each) => isAtOrBelow(each, at)))
}

/** By the name that programs have for it, as far as that leads through links. */
function shownAt(path: string): ShownPlace[] {
  const [parent] = realpathIfAny(dirname(path))
  const [real] = realpathIfAny(path)
  return parent === undefined || real === undefined ? [] : [{ at: join(parent, basename(path)), real }]
}

/** Throws when the workdir is such that the sandbox would have a hole; nothing must be started then. */
export function mountArguments(plan: SandboxPlan, places?: ShellPlaces): string[] {
  const covered = [makeReal(plan.dataDir), makeReal(plan.workdirBase)] as const
  // A pipe or a device (`/dev/fd/63`, `/dev/null`) is no place where a key lies.
  const keyFiles = plan.keyFiles
    .flatMap(realpathIfAny)
    .filter((path) => statSync(path, { throwIfNoEntry: false })?.isFile())
  const bind = bindFor(places?.inherit)
  if (places) refuseHoles(places.workdir.path, covered, keyFiles)
  const fixed: Mount[] = [
    ...homesOf(plan).map(cover),
    ...(places?.shown ?? []).flatMap(({ at, place }) =>
      place ? [{ at, args: () => bind('--ro-bind', place, at) }] : [],
    ),
    ...socketMounts(),
    ...covered.map(cover),
    // No device can be opened on these mounts: who tries to read the file is told so.
    ...keyFiles.map((at) => ({ at, args: () => ['--ro-bind', '/dev/null', at] })),
    ...(places ? ownMounts(places, bind) : []),
  ]
  const mounts = [...scratchMounts(places, fixed, bind), ...fixed]
  const kept = places ? mounts.filter(({ at }) => mayMountAt(at, places.workdir.path, keyFiles)) : mounts
  // The last at one place counts; what holds others comes before them.
  const ordered = [...new Map(kept.map((mount) => [mount.at, mount])).values()].sort(
    (a, b) => a.at.length - b.at.length,
  )
  return [
    ...(plan.readable ? systemMounts() : ['--ro-bind', '/', '/']),
    '--dev',
    '/dev',
    '--proc',
    '/proc',
    ...KERNEL_SETTINGS.filter((path) => existsSync(path)).flatMap((path) => ['--ro-bind', path, path]),
    ...KERNEL_SECRETS.filter((path) => existsSync(path)).flatMap((path) => ['--ro-bind', '/dev/null', path]),
    ...ordered.flatMap(({ args }) => args()),
    ...ordered.flatMap(({ at, isCover }) => (isCover ? ['--remount-ro', at] : [])),
    ...(plan.readable ? ['--remount-ro', '/'] : []),
  ]
}

/**
 * A shell may move what is below its workdir. Whatever would have to be covered there could then be found under another
 * name by the next shell; only what lies directly in it can be held in its place.
 */
function refuseHoles(workdir: string, [dataDir, base]: readonly [string, string], keyFiles: readonly string[]): void {
  const inside = [dataDir, base, ...keyFiles.map(dirname)].find((path) => isBelow(path, workdir))
  if (
    inside !== undefined ||
    workdir === dataDir ||
    workdir === base ||
    (isBelow(workdir, dataDir) && !isAtOrBelow(workdir, base))
  )
    throw new Error(`The server’s own files are in the workdir ${workdir}; in a sandbox no shell is started there.`)
}

/** Nothing is put inside of the workdir, for the sake of the same links. */
function mayMountAt(at: string, workdir: string, keyFiles: readonly string[]): boolean {
  return !isBelow(at, workdir) || (dirname(at) === workdir && keyFiles.includes(at))
}

const homesOf = ({ home }: SandboxPlan): string[] => [...HOMES, home].flatMap(realpathIfAny).filter((at) => at !== sep)

function socketMounts(): Mount[] {
  const [sockets] = realpathIfAny(SOCKETS)
  if (sockets === undefined) return []
  // With systemd the file that names the name servers is in there.
  const [resolver] = realpathIfAny('/etc/resolv.conf')
  const shown = [SYSTEM_PROGRAMS, ...(resolver === undefined ? [] : [resolver])].filter((at) => isBelow(at, sockets))
  return [
    { at: sockets, args: () => ['--tmpfs', sockets] },
    ...shown.map((at) => ({ at, args: () => ['--ro-bind-try', at, at] })),
  ]
}

/**
 * On disk, and the same for all shells of the conversation; in memory, and of one shell, where other mounts have to lie in
 * it: bwrap would follow the links that an earlier shell has left on the way there.
 */
function scratchMounts(places: ShellPlaces | undefined, others: readonly Mount[], bind: Bind): Mount[] {
  return SCRATCH.flatMap(realpathIfAny).map((at) => {
    const inMemory = !places || others.some((mount) => isBelow(mount.at, at))
    return { at, args: () => (inMemory ? ['--perms', '1777', '--tmpfs', at] : bind('--bind', places.scratch, at)) }
  })
}

function ownMounts({ workdir, visible, home }: ShellPlaces, bind: Bind): Mount[] {
  return [
    // Read-only: the server opens files in there by name, and would follow a link that a shell had put in their place.
    ...visible.map((place) => ({ at: place.path, args: () => bind('--ro-bind', place, place.path) })),
    { at: home.path, args: () => bind('--bind', home, home.path) },
    { at: workdir.path, args: () => bind('--bind', workdir, workdir.path) },
  ]
}

type Bind = (option: '--bind' | '--ro-bind', place: OpenedPath, at: string) => string[]

const bindFor =
  (inherit: ShellPlaces['inherit']): Bind =>
  (option, place, at) =>
    inherit ? [`${option}-fd`, String(inherit(place)), at] : [option, place.path, at]

const cover = (at: string): Mount => ({ at, args: () => ['--tmpfs', at], isCover: true })

function makeReal(directory: string): string {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  return realpathSync(directory)
}

function realpathIfAny(path: string): [string] | [] {
  try {
    return [realpathSync(path)]
  } catch {
    return [] // there is nothing to show or to hide
  }
}

function isBelow(path: string, directory: string): boolean {
  const way = relative(directory, path)
  return way !== '' && way !== '..' && !way.startsWith(`..${sep}`)
}

const isAtOrBelow = (path: string, directory: string) => path === directory || isBelow(path, directory)
