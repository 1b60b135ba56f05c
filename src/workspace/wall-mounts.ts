/**
 * What a shell behind the wall sees of the host's files, as arguments of bwrap(1): all of it read-only, homes and the
 * server's own files out of sight, and rights to write in the conversation's own places only.
 */
import { existsSync, mkdirSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, join, relative, sep } from 'node:path'

/** What holds for all shells of a server. */
export type WallPlan = {
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
}

/** What is one conversation's own. All of it exists, and none but the workdir is anywhere a shell could have moved it. */
export type ShellPlaces = {
  readonly workdir: string
  readonly visible: readonly string[]
  readonly home: string
  /** What it sees as /tmp. */
  readonly scratch: string
}

/** What no shell sees, for who works for the agent in the server's own process; it has to keep to the same. */
export function hiddenFromShells({ dataDir, workdirBase, keyFiles, home }: Omit<WallPlan, 'path' | 'named'>): string[] {
  return [dataDir, workdirBase, ...keyFiles, home, ...HOMES, SOCKETS, ...SCRATCH, '/proc', '/dev']
}

type Mount = {
  readonly at: string
  readonly args: readonly string[]
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
 * Root writes there without any capability, and what `core_pattern` names runs outside of every wall. bwrap covers other
 * parts of /proc, but misses these.
 */
const KERNEL_SETTINGS = ['acpi', 'asound', 'fs', 'scsi', 'sys'].map((name) => `/proc/${name}`)
const SCRATCH = ['/tmp', '/var/tmp']
const HOMES = ['/home', '/root']

/** Throws when the workdir is such that the wall would have a hole; nothing must be started then. */
export function mountArguments(plan: WallPlan, places?: ShellPlaces): string[] {
  const covered = [plan.dataDir, plan.workdirBase].map(makeReal)
  // A pipe or a device (`/dev/fd/63`, `/dev/null`) is no place where a key lies.
  const keyFiles = plan.keyFiles
    .flatMap(realpathIfAny)
    .filter((path) => statSync(path, { throwIfNoEntry: false })?.isFile())
  if (places) refuseHoles(places.workdir, covered, keyFiles)
  const fixed: Mount[] = [
    ...homeMounts(plan),
    ...socketMounts(),
    ...covered.map(cover),
    // No device can be opened on these mounts: who tries to read the file is told so.
    ...keyFiles.map((at) => ({ at, args: ['--ro-bind', '/dev/null', at] })),
    ...(places ? ownMounts(places) : []),
  ]
  const mounts = [...scratchMounts(places, fixed), ...fixed]
  const kept = places ? mounts.filter(({ at }) => mayMountAt(at, places.workdir, keyFiles)) : mounts
  // The last at one place counts; what holds others comes before them.
  const ordered = [...new Map(kept.map((mount) => [mount.at, mount])).values()].sort(
    (a, b) => a.at.length - b.at.length,
  )
  const wholeHost = ['--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc']
  return [
    ...wholeHost,
    ...KERNEL_SETTINGS.filter((path) => existsSync(path)).flatMap((path) => ['--ro-bind', path, path]),
    ...ordered.flatMap(({ args }) => args),
    ...ordered.flatMap(({ at, isCover }) => (isCover ? ['--remount-ro', at] : [])),
  ]
}

/**
 * A shell may move what is below its workdir. Whatever would have to be covered there could then be found under another
 * name by the next shell; only what lies directly in it can be held in its place.
 */
function refuseHoles(workdir: string, covered: readonly string[], keyFiles: readonly string[]): void {
  const [dataDir, base] = covered as [string, string]
  if (realpathSync(workdir) !== workdir)
    throw new Error(`The workdir ${workdir} has become a link to somewhere else; no shell is started there.`)
  const inside = [dataDir, base, ...keyFiles.map(dirname)].find((path) => isBelow(path, workdir))
  if (inside !== undefined || workdir === dataDir || (isBelow(workdir, dataDir) && !isAtOrBelow(workdir, base)))
    throw new Error(`The server’s own files are in the workdir ${workdir}; behind a wall no shell is started there.`)
}

/** Nothing is put inside of the workdir, for the sake of the same links. */
function mayMountAt(at: string, workdir: string, keyFiles: readonly string[]): boolean {
  return !isBelow(at, workdir) || (dirname(at) === workdir && keyFiles.includes(at))
}

function homeMounts({ home, path, named }: WallPlan): Mount[] {
  const homes = [...HOMES, home].flatMap(realpathIfAny).filter((at) => at !== sep)
  const programs = path.split(':').filter((directory) => directory.startsWith(sep))
  const shown = [...TOOLCHAINS.map((name) => join(home, name)), ...programs, ...named]
  return [
    ...homes.map(cover),
    ...shown.flatMap((from) => {
      // By the name that the environment has for it, as far as that leads through the home.
      const at = realpathIfAny(dirname(from)).map((parent) => join(parent, basename(from)))[0]
      if (at === undefined || !homes.some((each) => isBelow(at, each)) || !existsSync(from)) return []
      // A whole home on the search path is not shown for that.
      if (homes.some((each) => isAtOrBelow(each, at))) return []
      return [{ at, args: ['--ro-bind-try', realpathSync(from), at] }]
    }),
  ]
}

function socketMounts(): Mount[] {
  const [sockets] = realpathIfAny(SOCKETS)
  if (sockets === undefined) return []
  // With systemd the file that names the name servers is in there.
  const [resolver] = realpathIfAny('/etc/resolv.conf')
  const shown = [SYSTEM_PROGRAMS, ...(resolver === undefined ? [] : [resolver])].filter((at) => isBelow(at, sockets))
  return [{ at: sockets, args: ['--tmpfs', sockets] }, ...shown.map((at) => ({ at, args: ['--ro-bind-try', at, at] }))]
}

/**
 * On disk, and the same for all shells of the conversation; in memory, and of one shell, where other mounts have to lie in
 * it: bwrap would follow the links that an earlier shell has left on the way there.
 */
function scratchMounts(places: ShellPlaces | undefined, others: readonly Mount[]): Mount[] {
  return SCRATCH.flatMap(realpathIfAny).map((at) => {
    const inMemory = !places || others.some((mount) => isBelow(mount.at, at))
    return { at, args: inMemory ? ['--perms', '1777', '--tmpfs', at] : ['--bind', places.scratch, at] }
  })
}

function ownMounts({ workdir, visible, home }: ShellPlaces): Mount[] {
  return [
    // Read-only: the server opens files in there by name, and would follow a link that a shell had put in their place.
    ...visible.map((at) => ({ at, args: ['--ro-bind', at, at] })),
    { at: home, args: ['--bind', home, home] },
    { at: workdir, args: ['--bind', workdir, workdir] },
  ]
}

const cover = (at: string): Mount => ({ at, args: ['--tmpfs', at], isCover: true })

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
