/** What a network mode adds to a sandboxed shell: its namespace, mounts, variables and proxy. */
import type { ChildProcess } from '../lib/start-process.ts'
import { realpathSync } from 'node:fs'
import { afterListener, listenerMount, takeListener } from './network-listener.ts'
import { PROXY_VARIABLES } from './proxy-environment.ts'
import type { ShellNetwork } from './launch.ts'

export type NetworkLaunch = {
  /** Arguments of bwrap(1), after all other mounts. */
  readonly arguments: readonly string[]
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** See `Launch`. */
  readonly stale: Readonly<Record<string, string>>
  readonly onChannel?: (child: ChildProcess) => void
}

/** `isListed`: the sandbox shows only listed files of the host. */
export function networkLaunch(
  { mode, adopt }: ShellNetwork,
  argv: readonly string[],
  isListed: boolean,
): NetworkLaunch {
  if (mode === 'open') return { arguments: [], argv, env: {}, stale: PROXY_VARIABLES }
  const own = ['--unshare-net', ...withoutNameServers(isListed)]
  if (mode === 'none') {
    // The host's proxies are unreachable as well; programs must not try them and wait.
    const unset = Object.keys(PROXY_VARIABLES).flatMap((name) => ['--unsetenv', name])
    return { arguments: [...own, ...unset], argv, env: {}, stale: PROXY_VARIABLES }
  }
  return {
    arguments: [...own, ...listenerMount()],
    argv: afterListener(argv),
    env: PROXY_VARIABLES,
    stale: {},
    onChannel: (child) => takeListener(child, adopt),
  }
}

const NAME_SERVERS = '/etc/resolv.conf'

/** No name server is reachable from there, and their addresses reveal details of the host's network. */
function withoutNameServers(isListed: boolean): string[] {
  const real = realpathIfAny(NAME_SERVERS)
  if (real === undefined) return [] // there are none
  // If all files are visible, a link is shown as a link; if they are listed, its target is shown in its place.
  const shownPaths = isListed
    ? [NAME_SERVERS, real].filter((path) => path === NAME_SERVERS || path.startsWith('/run/'))
    : [real]
  return [...new Set(shownPaths)].flatMap((path) => ['--ro-bind', '/dev/null', path])
}

function realpathIfAny(path: string): string | undefined {
  try {
    return realpathSync(path)
  } catch {
    return undefined
  }
}
