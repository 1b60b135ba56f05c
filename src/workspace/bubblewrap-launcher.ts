/**
 * The launcher with a wall: each shell runs under bwrap(1), in namespaces of its own. It sees no process but those it
 * started, and all of them die with it; what it sees of the files is in `wall-mounts.ts`.
 */
import { chmodSync, existsSync, mkdirSync, symlinkSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { networkLaunch } from './network-launch.ts'
import type { ShellLauncher } from './shell.ts'
import { mountArguments, TOOLCHAINS, type WallPlan } from './wall-mounts.ts'

const NAMESPACES = [
  // The shell's processes go with the shell, and the shell with the server, however that ends.
  '--die-with-parent',
  '--unshare-pid',
  '--unshare-ipc',
  '--unshare-uts',
  '--unshare-cgroup-try',
  // So that nothing can be typed into a terminal that the server was started from.
  '--new-session',
]

/**
 * What root keeps: enough to unpack an archive, to give files away and to become another user, as in a container.
 * Nothing that reaches mounts, devices, other processes or the kernel. Other users have none of it to begin with.
 */
const ROOT_CAPABILITIES = ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'KILL', 'NET_BIND_SERVICE', 'SETGID', 'SETUID']

export type Wall = WallPlan & {
  /** Absolute: what a search finds could change. */
  readonly bwrap: string
}

export function createBubblewrapLauncher(wall: Wall, isolatesNetwork: boolean): ShellLauncher {
  return {
    isolation: 'bubblewrap',
    isolatesNetwork,
    async launch(argv, { workdir, visible, privateDir, network }) {
      await mkdir(workdir, { recursive: true })
      const places = { workdir, visible, ...privatePlaces(privateDir) }
      makeHome(places.home, wall.home)
      makeScratch(places.scratch)
      const { env, stale, onChannel, ...net } = networkLaunch(network, argv)
      return {
        argv: [
          wall.bwrap,
          ...baseArguments(),
          ...mountArguments(wall, places),
          ...net.arguments,
          '--chdir',
          workdir,
          '--',
          ...net.argv,
        ],
        cwd: '/',
        env: { HOME: places.home, TMPDIR: '/tmp', ...env },
        stale,
        ...(onChannel && { onChannel }),
        descriptors: [],
        generations: 2,
        [Symbol.asyncDispose]: () => Promise.resolve(),
      }
    },
  }
}

/** The same wall around no conversation: to find out whether there can be one. */
export function trialArguments(wall: WallPlan, more: readonly string[] = []): string[] {
  return [...baseArguments(), ...mountArguments(wall), ...more, '--', 'true']
}

function baseArguments(): string[] {
  const rights =
    process.getuid?.() === 0
      ? ['--cap-drop', 'ALL', ...ROOT_CAPABILITIES.flatMap((name) => ['--cap-add', `CAP_${name}`])]
      : ['--unshare-user']
  // Its directory is out of sight.
  return [...NAMESPACES, ...rights, '--unsetenv', 'XDG_RUNTIME_DIR']
}

const privatePlaces = (privateDir: string) => ({ home: join(privateDir, 'home'), scratch: join(privateDir, 'tmp') })

/** Programs that look for their toolchain in the home find it: by links made before any shell could be in their way. */
function makeHome(home: string, usersHome: string): void {
  if (mkdirSync(home, { recursive: true, mode: 0o700 }) === undefined) return
  for (const name of TOOLCHAINS.filter((each) => existsSync(join(usersHome, each)))) {
    mkdirSync(dirname(join(home, name)), { recursive: true })
    symlinkSync(join(usersHome, name), join(home, name))
  }
}

function makeScratch(directory: string): void {
  if (mkdirSync(directory, { recursive: true }) === undefined) return
  // Like /tmp, whatever the umask is.
  chmodSync(directory, 0o1777)
}
