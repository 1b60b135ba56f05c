/**
 * The mounts of a sandboxed shell, as arguments of bwrap(1): system files or all files read-only, homes and the
 * server's own files hidden, and write access only in the conversation's own directories.
 */
import { existsSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, join, relative, sep } from 'node:path'
import { makeDirectoriesSync } from '../files/make-directories.ts'
import type { OpenedPath } from '../files/jail/opened-path.ts'
import { SYSTEM_DIRECTORIES, SYSTEM_FILES, systemMounts } from './system-files.ts'

/** The settings for all shells of a server. */
export type SandboxPlan = {
  /** The server's data, and the base of all workdirs. Created if they do not exist. */
  readonly dataDir: string
  readonly workdirBase: string
  /** The directory of the server's data that instances share. */
  readonly sharedDir?: string | undefined
  /** Files that contain keys. They need not exist. */
  readonly keyFiles: readonly string[]
  /** Further ones at this time. Unlike `keyFiles`, they are visible to a shell whose workdir they are deep in. */
  readonly otherKeyFiles?: () => readonly string[]
  /** The home of the server's user. */
  readonly home: string
  /** Search path of programs; its directories inside the home are visible. */
  readonly path: string
  /** Other files and directories named by a shell's environment, such as certificates. */
  readonly named: readonly string[]
  /** Visible in addition to system files, and nothing else; undefined: everything that is not hidden is visible. */
  readonly readable?: readonly string[] | undefined
}

/** A visible place of the host, under the name that programs use for it. `real` contained no link at startup. */
export type ShownPlace = { readonly at: string; readonly real: string }

/** The open directories of one conversation. */
export type ShellPlaces = {
  readonly workdir: OpenedPath
  readonly isWorkdirReadOnly?: boolean | undefined
  readonly additionalDirectories: readonly OpenedPath[]
  readonly visible: readonly OpenedPath[]
  readonly home: OpenedPath
  /** Its /tmp. */
  readonly scratch: OpenedPath
  /** The `shownPlaces` that still are where they were at startup. */
  readonly shown: readonly { readonly at: string; readonly place: OpenedPath | undefined }[]
  /** Shared with other conversations. */
  readonly caches: readonly OpenedPath[]
  /** The socket of an ssh agent. */
  readonly sshAgent: OpenedPath | undefined
  /** A file. */
  readonly gitConfig: OpenedPath | undefined
  /**
   * Makes bwrap inherit a place; returns the number of the descriptor there, which is valid for one mount. Undefined
   * for a bwrap that only supports paths. Only mounted places are inherited: bwrap closes no other descriptor before
   * the shell.
   */
  readonly inherit: ((place: OpenedPath) => number) | undefined
}

/**
 * Paths hidden from all shells, for code that works for the agent in the server's process and must observe the same
 * limits.
 */
export function hiddenFromShells({
  dataDir,
  workdirBase,
  sharedDir,
  keyFiles,
  otherKeyFiles = () => [],
  home,
}: Pick<SandboxPlan, 'dataDir' | 'workdirBase' | 'sharedDir' | 'keyFiles' | 'otherKeyFiles' | 'home'>): string[] {
  const own = [...ownOf({ dataDir, sharedDir }), workdirBase, ...keyFiles, ...otherKeyFiles()]
  return [...own, home, ...HOMES, SOCKETS, ...SCRATCH, '/proc', '/dev']
}

const ownOf = ({ dataDir, sharedDir }: Pick<SandboxPlan, 'dataDir' | 'sharedDir'>): string[] =>
  sharedDir === undefined ? [dataDir] : [dataDir, sharedDir]

/** The most that a shell may read, for the same purpose. */
export function readableByShells(readable: readonly string[]): string[] {
  return [...SYSTEM_DIRECTORIES, ...SYSTEM_FILES, ...readable]
}

type Mount = {
  readonly at: string
  readonly args: () => readonly string[]
  /** An empty directory, made read-only after everything inside it is mounted. */
  readonly isCover?: true
}

/**
 * The directories of the home that programs on the search path are known to need: everything else is private and may
 * contain keys.
 */
export const TOOLCHAINS = ['.asdf', '.nvm', '.pyenv', '.rbenv', '.rustup', '.sdkman', '.volta', '.local/share/mise']

/** Contains sockets of services that run commands for others: docker, systemd, the user's own session. */
const SOCKETS = '/run'
/** No shell can put a link there: the directory is empty in each new sandbox. */
export const SSH_AGENT_IN_SANDBOX = '/run/ssh-agent'
export const GIT_CONFIG_IN_SANDBOX = '/run/gitconfig'
/** The location of programs on NixOS. */
const SYSTEM_PROGRAMS = '/run/current-system'
/**
 * Root can write there without any capability, and the program in `core_pattern` runs outside every sandbox. bwrap
 * covers other parts of /proc, but not these.
 */
const KERNEL_SETTINGS = ['acpi', 'asound', 'fs', 'scsi', 'sys'].map((name) => `/proc/${name}`)
/**
 * Keys and addresses of the kernel, and the memory of the sandbox's init: a process that can write there could survive
 * the server.
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
 * Returns the visible parts of the homes, or of the operator's list. Computed once, before there is any shell:
 * otherwise an agent that works there could put a link to any other file in their place.
 */
export function shownPlaces(plan: SandboxPlan): ShownPlace[] {
  if (plan.readable) return plan.readable.flatMap(shownAt)
  const homes = homesOf(plan)
  const programs = plan.path.split(':').filter((directory) => directory.startsWith(sep))
  const wantedPaths = [...TOOLCHAINS.map((name) => join(plan.home, name)), ...programs, ...plan.named]
  // A search path that contains a whole home does not make it visible.
  return wantedPaths
    .flatMap(shownAt)
    .filter(({ at }) => homes.some((each) => isBelow(at, each)) && !homes.some((each) => isAtOrBelow(each, at)))
}

/** Returns the name that programs use, including the links on its path. */
function shownAt(path: string): ShownPlace[] {
  const [parent] = realpathIfAny(dirname(path))
  const [real] = realpathIfAny(path)
  return parent === undefined || real === undefined ? [] : [{ at: join(parent, basename(path)), real }]
}

/** Throws if the workdir or another writable directory would leave a hole in the sandbox; nothing must be started then. */
export function mountArguments(plan: SandboxPlan, places?: ShellPlaces): string[] {
  const coveredPaths = { own: ownOf(plan).map(makeReal), base: makeReal(plan.workdirBase) }
  const fixedFiles = plan.keyFiles.flatMap(fileIfAny)
  const bind = bindFor(places?.inherit)
  const writable = places ? outermost([places.workdir, ...places.additionalDirectories]) : []
  for (const { path } of writable) refuseHoles(path, coveredPaths, fixedFiles)
  const keyFiles = [...fixedFiles, ...(plan.otherKeyFiles?.() ?? []).flatMap(fileIfAny)]
  const fixedMounts: Mount[] = [
    ...homesOf(plan).map(cover),
    ...(places?.shown ?? []).flatMap(({ at, place }) =>
      place ? [{ at, args: () => bind('--ro-bind', place, at) }] : [],
    ),
    ...runMounts(places, bind),
    ...[...coveredPaths.own, coveredPaths.base].map(cover),
    // No device can be opened on these mounts: reading the file fails with an error.
    ...keyFiles.map((at) => ({ at, args: () => ['--ro-bind', '/dev/null', at] })),
    ...(places ? ownMounts(places, writable, bind) : []),
  ]
  const mounts = [...scratchMounts(places, fixedMounts, bind), ...fixedMounts]
  const keptMounts = mounts.filter(({ at }) => writable.every(({ path }) => mayMountAt(at, path, keyFiles)))
  // The last mount at one place counts; parent directories come before their contents.
  const orderedMounts = [...new Map(keptMounts.map((mount) => [mount.at, mount])).values()].sort(
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
    ...orderedMounts.flatMap(({ args }) => args()),
    ...orderedMounts.flatMap(({ at, isCover }) => (isCover ? ['--remount-ro', at] : [])),
    ...(plan.readable ? ['--remount-ro', '/'] : []),
  ]
}

/** Leaves out the directories that are inside of others: those are mounted with them. */
const outermost = (places: readonly OpenedPath[]): readonly OpenedPath[] =>
  places.filter(
    ({ path }, at) => !places.some((other, i) => isBelow(path, other.path) || (other.path === path && i < at)),
  )

type CoveredMount = { readonly own: readonly string[]; readonly base: string }

/**
 * A shell may move everything below its workdir. A path that must be hidden there could then be found under another
 * name by the next shell; only entries directly in it can be held in place.
 */
function refuseHoles(directory: string, { own, base }: CoveredMount, keyFiles: readonly string[]): void {
  const inside = [...own, base, ...keyFiles.map(dirname)].find((path) => isBelow(path, directory))
  if (
    inside !== undefined ||
    directory === base ||
    own.some((path) => directory === path || (isBelow(directory, path) && !isAtOrBelow(directory, base)))
  )
    throw new Error(`The server’s own files are in the workdir ${directory}; in a sandbox no shell is started there.`)
}

/** Nothing is mounted inside a writable directory, because of the same links. */
function mayMountAt(at: string, directory: string, keyFiles: readonly string[]): boolean {
  return !isBelow(at, directory) || (dirname(at) === directory && keyFiles.includes(at))
}

const homesOf = ({ home }: SandboxPlan): string[] => [...HOMES, home].flatMap(realpathIfAny).filter((at) => at !== sep)

function runMounts(places: Pick<ShellPlaces, 'sshAgent' | 'gitConfig'> | undefined, bind: Bind): Mount[] {
  const [sockets] = realpathIfAny(SOCKETS)
  if (sockets === undefined) return []
  const givenPlaces: [OpenedPath | undefined, string][] = [
    [places?.sshAgent, SSH_AGENT_IN_SANDBOX],
    [places?.gitConfig, GIT_CONFIG_IN_SANDBOX],
  ]
  // This directory contains the file with the name servers if there is systemd.
  const [resolver] = realpathIfAny('/etc/resolv.conf')
  const shownPaths = [SYSTEM_PROGRAMS, ...(resolver === undefined ? [] : [resolver])].filter((at) =>
    isBelow(at, sockets),
  )
  return [
    { at: sockets, args: () => ['--tmpfs', sockets] },
    ...shownPaths.map((at) => ({ at, args: () => ['--ro-bind-try', at, at] })),
    // A read-only mount changes nothing about who may connect to a socket.
    ...givenPlaces.flatMap(([place, name]) => {
      const at = join(sockets, basename(name))
      return place ? [{ at, args: () => bind('--ro-bind', place, at) }] : []
    }),
  ]
}

/**
 * Mounts scratch directories that are on disk and shared by all shells of the conversation; in memory and per shell if
 * other mounts must be inside: bwrap would follow links that an earlier shell has left on their path.
 */
function scratchMounts(places: ShellPlaces | undefined, others: readonly Mount[], bind: Bind): Mount[] {
  return SCRATCH.flatMap(realpathIfAny).map((at) => {
    const inMemory = !places || others.some((mount) => isBelow(mount.at, at))
    return { at, args: () => (inMemory ? ['--perms', '1777', '--tmpfs', at] : bind('--bind', places.scratch, at)) }
  })
}

function ownMounts(
  { visible, home, caches, workdir, isWorkdirReadOnly }: ShellPlaces,
  writable: readonly OpenedPath[],
  bind: Bind,
): Mount[] {
  const optionFor = (place: OpenedPath) => (isWorkdirReadOnly && place === workdir ? '--ro-bind' : '--bind')
  return [
    // Read-only: the server opens files in there by name, and would follow a link that a shell had put in their place.
    ...visible.map((place) => ({ at: place.path, args: () => bind('--ro-bind', place, place.path) })),
    ...[home, ...writable, ...caches].map((place) => ({
      at: place.path,
      args: () => bind(optionFor(place), place, place.path),
    })),
  ]
}

type Bind = (option: '--bind' | '--ro-bind', place: OpenedPath, at: string) => string[]

const bindFor =
  (inherit: ShellPlaces['inherit']): Bind =>
  (option, place, at) =>
    inherit ? [`${option}-fd`, String(inherit(place)), at] : [option, place.path, at]

const cover = (at: string): Mount => ({ at, args: () => ['--tmpfs', at], isCover: true })

function makeReal(directory: string): string {
  makeDirectoriesSync(directory, 0o700)
  return realpathSync(directory)
}

function realpathIfAny(path: string): [string] | [] {
  try {
    return [realpathSync(path)]
  } catch {
    return [] // there is nothing to show or to hide
  }
}

/** A pipe or a device (`/dev/fd/63`, `/dev/null`) cannot contain a key. */
const fileIfAny = (path: string): string[] =>
  realpathIfAny(path).filter((real) => statSync(real, { throwIfNoEntry: false })?.isFile())

function isBelow(path: string, directory: string): boolean {
  const way = relative(directory, path)
  return way !== '' && way !== '..' && !way.startsWith(`..${sep}`)
}

const isAtOrBelow = (path: string, directory: string) => path === directory || isBelow(path, directory)
