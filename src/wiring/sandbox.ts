/** Sets up the sandbox for commands as the operator configured it, and the network modes that it supports. */
import { homeDirectory } from '../config/paths.ts'
import type { Config } from '../config/config.ts'
import { ConfigError } from '../config/environment.ts'
import type { ServerNetwork } from '../contract/values/network.ts'
import { HostEnvironment } from '../lib/start-process.ts'
import { findBubblewrap } from '../sandbox/find-launcher.ts'
import type { ShellLauncher } from '../sandbox/launch.ts'
import { hostLauncher } from '../sandbox/launch.ts'

/** `missing` says why there is no sandbox, as a clause; undefined if there is one. */
export type FoundSandbox = {
  readonly launcher: ShellLauncher
  readonly missing?: string
  /** Call it after the last shell has ended. */
  readonly close?: () => void
}

/** Throws a `ConfigError` if a sandbox is required but not possible. */
export async function findSandbox(config: Config): Promise<FoundSandbox> {
  if (config.isolation === 'none') return { launcher: hostLauncher, missing: 'OPENHANDS_ISOLATION has the value none' }
  const env = HostEnvironment.from(config.environment)
  const launcherSearch = await findBubblewrap({
    dataDir: config.dataDir,
    workdirBase: config.workdirBase,
    sharedDir: config.sharedDir,
    keyFiles: config.secretFiles,
    otherKeyFiles: config.hiddenFiles,
    home: homeDirectory(),
    path: env.path,
    named: env.namedPaths,
    readable: config.sandboxReadable,
  })
  if ('launcher' in launcherSearch) return launcherSearch
  if (config.isolation === 'bubblewrap')
    throw new ConfigError(`OPENHANDS_ISOLATION=bubblewrap is not available: ${launcherSearch.missing}.`)
  return { launcher: hostLauncher, missing: launcherSearch.missing }
}

/** Throws a `ConfigError` if the configured network mode cannot be enforced: the network would be open. */
export function serverNetwork({ network }: Config, { isolation, isolatesNetwork }: ShellLauncher): ServerNetwork {
  if (isolatesNetwork) return { ...network, modes: ['none', 'allowlist', 'open'] }
  if (network.default.mode === 'open' && network.ceiling.mode === 'open') return { ...network, modes: ['open'] }
  const why = isolation === 'none' ? 'there is no sandbox' : 'sandboxes cannot have a separate network on this host'
  throw new ConfigError(
    `OPENHANDS_NETWORK and OPENHANDS_NETWORK_CEILING can only be open: ${why}. Install bubblewrap, or allow the container to create network namespaces.`,
  )
}
