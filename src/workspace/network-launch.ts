/** What a network mode adds to the start of a sandboxed shell: its namespace, its mounts, its variables and its proxy. */
import type { ChildProcess } from 'node:child_process'
import { realpathSync } from 'node:fs'
import { afterListener, listenerMount, takeListener } from './network-listener.ts'
import { PROXY_VARIABLES } from './proxy-environment.ts'
import type { ShellNetwork } from './shell.ts'

export type NetworkLaunch = {
  /** Arguments of bwrap(1), behind all other mounts. */
  readonly arguments: readonly string[]
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** See `Launch`. */
  readonly stale: Readonly<Record<string, string>>
  readonly onChannel?: (child: ChildProcess) => void
}

export function networkLaunch({ mode, adopt }: ShellNetwork, argv: readonly string[]): NetworkLaunch {
  if (mode === 'open') return { arguments: [], argv, env: {}, stale: PROXY_VARIABLES }
  const own = ['--unshare-net', ...withoutNameServers()]
  if (mode === 'none') {
    // The proxies of the host are not reached either; a program that tries them waits for nothing.
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

/** No name server is reached from there, and their addresses say something about the host's network. */
function withoutNameServers(): string[] {
  try {
    return ['--ro-bind', '/dev/null', realpathSync('/etc/resolv.conf')]
  } catch {
    return [] // there are none
  }
}
