/**
 * The launcher with a sandbox: each shell runs under bwrap(1), in namespaces of its own. It sees no process but those it
 * started, and all of them die with it. What it sees of the files is in `sandbox-mounts.ts`, what it may ask of the
 * kernel in `seccomp-rules.ts`.
 */
import { existsSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Queue } from '../lib/queue.ts'
import { openHome, openOwnDirectory, openScratch, openVisible, openWorkdir } from './mount-sources.ts'
import {
  mountArguments,
  shownPlaces,
  TOOLCHAINS,
  type SandboxPlan,
  type ShellPlaces,
  type ShownPlace,
} from './mounts.ts'
import { FIRST_EXTRA_DESCRIPTOR, type Launch, type LaunchOptions, type ShellLauncher } from './launch.ts'
import { networkLaunch } from './network-launch.ts'

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

/** What the bwrap that was found can do, and may do here. */
export type SandboxFeatures = {
  /** It mounts what it is given a descriptor of (`--bind-fd`). */
  readonly bindsDescriptors: boolean
  /** It keeps user namespaces from being made, beside the seccomp filter that does so too (`--disable-userns`). */
  readonly disablesUserNamespaces: boolean
  /** It makes network namespaces. */
  readonly isolatesNetwork: boolean
  /** A descriptor that the compiled filter can be read from, by opening it again; undefined when there is no filter. */
  readonly filter: number | undefined
}

/** Which bubblewrap makes which sandbox. */
type SandboxMaker = SandboxPlan & {
  /** Absolute: what a search finds could change. */
  readonly bwrap: string
  readonly features: SandboxFeatures
}

export function createBubblewrapLauncher(sandbox: SandboxMaker): ShellLauncher {
  const shown = shownPlaces(sandbox)
  // Of what is listed, nothing is in the home by itself.
  const toolchains = sandbox.readable ? [] : TOOLCHAINS.filter((name) => existsSync(join(sandbox.home, name)))
  const prepared = { sandbox, shown, toolchains, turns: new Queue({ perKey: 1 }) }
  return {
    isolation: 'bubblewrap',
    isolatesNetwork: sandbox.features.isolatesNetwork,
    sandbox: {
      file_system: sandbox.readable ? 'allow_list' : 'host_read_only',
      seccomp: sandbox.features.filter !== undefined,
    },
    launch: (argv, options) => launchInSandbox(prepared, argv, options),
  }
}

/** The same sandbox around no conversation: to find out whether there can be one. `filter` as bwrap counts. */
export function trialArguments(plan: SandboxPlan, features: SandboxFeatures, filter: number | undefined): string[] {
  const network = features.isolatesNetwork ? ['--unshare-net'] : []
  return [...baseArguments(features), ...filterArguments(filter), ...mountArguments(plan), ...network, '--', 'true']
}

type Prepared = {
  readonly sandbox: SandboxMaker
  readonly shown: readonly ShownPlace[]
  readonly toolchains: readonly string[]
  /** By private directory: one that was just made, and is open, must not be replaced by another shell's. */
  readonly turns: Queue
}

async function launchInSandbox(
  { sandbox, shown, toolchains, turns }: Prepared,
  argv: readonly string[],
  { workdir, visible, privateDir, network }: LaunchOptions,
): Promise<Launch> {
  const { features } = sandbox
  if (network.mode !== 'open' && !features.isolatesNetwork)
    throw new Error(
      `No shell is started in the network mode ${network.mode}: bubblewrap makes no network namespace here.`,
    )
  if (!features.bindsDescriptors) refuseMovable(workdir, sandbox.workdirBase)
  await using opened = new AsyncDisposableStack()
  const descriptors: number[] = []
  const inherit = (handle: { readonly fd: number }) => FIRST_EXTRA_DESCRIPTOR - 1 + descriptors.push(handle.fd)
  const home = join(privateDir, 'home')
  const places: ShellPlaces = {
    workdir: opened.use(await openWorkdir(workdir)),
    home: opened.use(await turns.run(() => openHome(home, sandbox.home, toolchains), { key: privateDir })),
    scratch: opened.use(await turns.run(() => openScratch(join(privateDir, 'tmp')), { key: privateDir })),
    visible: await inOrder(visible, async (path) => opened.use(await openOwnDirectory(path))),
    shown: await inOrder(shown, async ({ at, real }) => ({ at, place: opened.use(await openVisible(real)) })),
    inherit: features.bindsDescriptors ? ({ handle }) => inherit(handle) : undefined,
  }
  const filter = features.filter === undefined ? undefined : inherit(opened.use(await openAgain(features.filter)))
  const args = [...baseArguments(features), ...filterArguments(filter), ...mountArguments(sandbox, places)]
  const { env, stale, onChannel, ...own } = networkLaunch(network, argv, sandbox.readable !== undefined)
  const held = opened.move()
  return {
    argv: [sandbox.bwrap, ...args, ...own.arguments, '--chdir', workdir, '--', ...own.argv],
    cwd: '/',
    env: { HOME: home, TMPDIR: '/tmp', ...env },
    stale,
    ...(onChannel && { onChannel }),
    descriptors,
    generations: 2,
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

/** A description of its own, that nobody has read from yet. */
const openAgain = (descriptor: number) => open(`/proc/self/fd/${descriptor}`, 'r')

/**
 * Without `--bind-fd` bwrap looks for the workdir by its name again. Only directly in the base is no other conversation's
 * workdir above it, whose shells could have put a link there by then.
 */
function refuseMovable(workdir: string, base: string): void {
  if (dirname(workdir) === base) return
  throw new Error(
    `No shell is started in the workdir ${workdir}: this bubblewrap has no --bind-fd, and takes only workdirs directly in ${base} then. Install bubblewrap 0.10 or newer.`,
  )
}

function baseArguments({ disablesUserNamespaces }: SandboxFeatures): string[] {
  const rights =
    process.getuid?.() === 0
      ? ['--cap-drop', 'ALL', ...ROOT_CAPABILITIES.flatMap((name) => ['--cap-add', `CAP_${name}`])]
      : ['--unshare-user', ...(disablesUserNamespaces ? ['--disable-userns'] : [])]
  // Its directory is out of sight.
  return [...NAMESPACES, ...rights, '--unsetenv', 'XDG_RUNTIME_DIR']
}

const filterArguments = (descriptor: number | undefined): string[] =>
  descriptor === undefined ? [] : ['--seccomp', String(descriptor)]

/** Not at once: what is opened when another one has failed would be closed by nobody. */
async function inOrder<T, R>(items: readonly T[], map: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  for (const item of items) results.push(await map(item))
  return results
}
