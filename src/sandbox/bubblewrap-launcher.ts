/**
 * The launcher with a sandbox: each shell runs under bwrap(1), in separate namespaces. It sees only the processes that
 * it started, and all of them end with it. `sandbox-mounts.ts` defines which files it sees, `seccomp-rules.ts` which
 * system calls it may use.
 */
import { existsSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Queue } from '../lib/queue.ts'
import { replaceFile } from '../lib/durable-file.ts'
import { openAt, type OpenedPath } from '../files/jail/opened-path.ts'
import { linkHome, linksTo } from './home-links.ts'
import {
  openAdditional,
  openHome,
  openOwnDirectory,
  openScratch,
  openSocket,
  openVisible,
  openWorkdir,
} from './mount-sources.ts'
import {
  GIT_CONFIG_IN_SANDBOX,
  mountArguments,
  shownPlaces,
  TOOLCHAINS,
  type SandboxPlan,
  type ShellPlaces,
  type ShownPlace,
} from './mounts.ts'
import { FIRST_EXTRA_DESCRIPTOR, type HomeView, type Launch, type LaunchOptions, type ShellLauncher } from './launch.ts'
import { cacheLinks, openCaches } from './package-caches.ts'
import { networkLaunch } from './network-launch.ts'

const NAMESPACES = [
  // The shell's processes end with the shell, and the shell with the server, however that ends.
  '--die-with-parent',
  '--unshare-pid',
  '--unshare-ipc',
  '--unshare-uts',
  '--unshare-cgroup-try',
  // Prevents input into the terminal that the server was started from.
  '--new-session',
]

/**
 * The capabilities that root keeps: enough to unpack an archive, to change file owners and to become another user, as
 * in a container. None that affects mounts, devices, other processes or the kernel. Other users have none of them
 * anyway.
 */
const ROOT_CAPABILITIES = ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'KILL', 'NET_BIND_SERVICE', 'SETGID', 'SETUID']

/** The features of the installed bwrap that work on this host. */
export type SandboxFeatures = {
  /** It can mount an open descriptor (`--bind-fd`). */
  readonly bindsDescriptors: boolean
  /** It can forbid new user namespaces, in addition to the seccomp filter (`--disable-userns`). */
  readonly disablesUserNamespaces: boolean
  /** It can create network namespaces. */
  readonly isolatesNetwork: boolean
  /** A descriptor from which the compiled filter is read, by reopening it; undefined if there is no filter. */
  readonly filter: number | undefined
}

/** A bubblewrap and the sandbox it creates. */
type SandboxMaker = SandboxPlan & {
  /** Absolute, because the result of a search could change. */
  readonly bwrap: string
  readonly features: SandboxFeatures
}

export function createBubblewrapLauncher(sandbox: SandboxMaker): ShellLauncher {
  const places = shownPlaces(sandbox)
  // If files are listed, nothing is mounted over the home itself.
  const toolchains = sandbox.readable ? [] : TOOLCHAINS.filter((name) => existsSync(join(sandbox.home, name)))
  const preparedParts = { sandbox, shown: places, toolchains, queue: new Queue({ perKey: 1 }) }
  return {
    isolation: 'bubblewrap',
    isolatesNetwork: sandbox.features.isolatesNetwork,
    sandbox: {
      file_system: sandbox.readable ? 'allow_list' : 'host_read_only',
      seccomp: sandbox.features.filter !== undefined,
    },
    launch: (argv, options) => launchInSandbox(preparedParts, argv, options),
  }
}

/**
 * Arguments for the same sandbox without a conversation, to test whether it works. `filter` is the descriptor as bwrap
 * numbers it.
 */
export function trialArguments(plan: SandboxPlan, features: SandboxFeatures, filter: number | undefined): string[] {
  const network = features.isolatesNetwork ? ['--unshare-net'] : []
  return [
    ...baseArguments(features),
    ...filterArguments(filter),
    ...mountArguments(plan),
    ...network,
    '--',
    '/bin/sh',
    '-c',
    ':',
  ]
}

type PreparedSandbox = {
  readonly sandbox: SandboxMaker
  readonly shown: readonly ShownPlace[]
  readonly toolchains: readonly string[]
  /**
   * One queue per private directory: a directory that was just created and is open must not be replaced by another
   * shell's.
   */
  readonly queue: Queue
}

async function launchInSandbox(
  { sandbox, shown, toolchains, queue }: PreparedSandbox,
  argv: readonly string[],
  { workdir, isWorkdirReadOnly, additionalDirectories = [], visible, privateDir, network, ...of }: LaunchOptions,
): Promise<Launch> {
  const { features } = sandbox
  const { home: view, gitConfig } = of
  if (network.mode !== 'open' && !features.isolatesNetwork)
    throw new Error(
      `No shell is started in the network mode ${network.mode}: bubblewrap cannot create network namespaces on this host.`,
    )
  if (!features.bindsDescriptors)
    for (const path of [workdir, ...additionalDirectories]) refuseMovable(path, sandbox.workdirBase)
  await using openedParts = new AsyncDisposableStack()
  const descriptors: number[] = []
  const inherit = (handle: { readonly fd: number }) => FIRST_EXTRA_DESCRIPTOR - 1 + descriptors.push(handle.fd)
  const home = join(privateDir, 'home')
  const places: ShellPlaces = {
    workdir: openedParts.use(await openWorkdir(workdir)),
    isWorkdirReadOnly,
    additionalDirectories: (
      await inOrder(additionalDirectories, async (path) => openedParts.use(await openAdditional(path)))
    ).filter((place) => place !== undefined),
    home: openedParts.use(await queue.run(() => openLinked(home, { sandbox, toolchains, view }), { key: privateDir })),
    scratch: openedParts.use(await queue.run(() => openScratch(join(privateDir, 'tmp')), { key: privateDir })),
    visible: await inOrder(visible, async (path) => openedParts.use(await openOwnDirectory(path))),
    shown: await inOrder([...shown, ...(view?.readable ?? [])], async ({ at, real }) => ({
      at,
      place: openedParts.use(await openVisible(real)),
    })),
    caches: await openSharedCaches(view, openedParts),
    sshAgent: view?.sshAgent === undefined ? undefined : openedParts.use(await openSocket(view.sshAgent)),
    gitConfig: gitConfig && openedParts.use(await openConfig(join(privateDir, 'gitconfig'), gitConfig)),
    inherit: features.bindsDescriptors ? ({ handle }) => inherit(handle) : undefined,
  }
  const filter = features.filter === undefined ? undefined : inherit(openedParts.use(await openAgain(features.filter)))
  const args = [...baseArguments(features), ...filterArguments(filter), ...mountArguments(sandbox, places)]
  const { env, stale, onChannel, ...own } = networkLaunch(network, argv, sandbox.readable !== undefined)
  const inside = { HOME: home, TMPDIR: '/tmp', ...(gitConfig && GIT_VARIABLES), ...env }
  const heldParts = openedParts.move()
  return {
    argv: [sandbox.bwrap, ...args, ...own.arguments, ...setArguments(inside), '--chdir', workdir, '--', ...own.argv],
    cwd: '/',
    env: inside,
    stale: gitConfig ? stale : { ...stale, ...GIT_VARIABLES },
    ...(onChannel && { onChannel }),
    descriptors,
    generations: 2,
    [Symbol.asyncDispose]: () => heldParts.disposeAsync(),
  }
}

/** Returns the home of the conversation, with links to what it sees of the person's. */
async function openLinked(
  home: string,
  {
    sandbox,
    toolchains,
    view,
  }: Pick<PreparedSandbox, 'sandbox' | 'toolchains'> & { readonly view: HomeView | undefined },
): Promise<OpenedPath> {
  const place = await openHome(home, sandbox.home, toolchains)
  try {
    await linkHome(
      place,
      view ? { ...linksTo(view), ...(view.packageCache !== undefined && cacheLinks(view.packageCache)) } : {},
      `${home}.links`,
    )
    return place
  } catch (error) {
    await place.handle.close()
    throw error
  }
}

async function openSharedCaches(view: HomeView | undefined, openedParts: AsyncDisposableStack): Promise<OpenedPath[]> {
  const caches = view?.packageCache === undefined ? [] : await openCaches(view.packageCache)
  return caches.map((place) => openedParts.use(place))
}

/** See git(1). */
const GIT_VARIABLES = { GIT_CONFIG_SYSTEM: GIT_CONFIG_IN_SANDBOX }

/** No shell sees the file by this name. A shell that runs keeps the one that it had. */
async function openConfig(path: string, text: Buffer): Promise<OpenedPath> {
  await replaceFile(path, text, { durable: false })
  return await openAt(path)
}

/** Opens a separate file description, with its own read offset. */
const openAgain = (descriptor: number) => open(`/proc/self/fd/${descriptor}`, 'r')

/**
 * Throws unless the workdir is directly in the base: without `--bind-fd`, bwrap looks it up by name again. Only a
 * workdir directly in the base has no other conversation's workdir above it, whose shells could have put a link there
 * meanwhile.
 */
function refuseMovable(workdir: string, base: string): void {
  if (dirname(workdir) === base) return
  throw new Error(
    `No shell is started that works in ${workdir}: this bubblewrap has no --bind-fd, and then only directories directly in ${base} are allowed. Install bubblewrap 0.10 or newer.`,
  )
}

function baseArguments({ disablesUserNamespaces }: SandboxFeatures): string[] {
  const rights =
    process.getuid?.() === 0
      ? ['--cap-drop', 'ALL', ...ROOT_CAPABILITIES.flatMap((name) => ['--cap-add', `CAP_${name}`])]
      : ['--unshare-user', ...(disablesUserNamespaces ? ['--disable-userns'] : [])]
  // Its directory is not mounted.
  return [...NAMESPACES, ...rights, '--unsetenv', 'XDG_RUNTIME_DIR']
}

/** Set in the sandbox only: what starts it keeps the server's home. */
const setArguments = (variables: Readonly<Record<string, string>>): string[] =>
  Object.entries(variables).flatMap(([name, value]) => ['--setenv', name, value])

const filterArguments = (descriptor: number | undefined): string[] =>
  descriptor === undefined ? [] : ['--seccomp', String(descriptor)]

/** Sequential: if they were opened concurrently and one failed, nobody would close the others. */
async function inOrder<T, R>(items: readonly T[], map: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  for (const item of items) results.push(await map(item))
  return results
}
