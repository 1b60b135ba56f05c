/** Finds the sandbox that commands run in, as the operator wants it, and says what the network can be there. */
import { homedir } from 'node:os'
import type { Config } from '../config/config.ts'
import { ConfigError } from '../config/environment.ts'
import type { ServerNetwork } from '../contract/network.ts'
import { findBubblewrap } from '../sandbox/find-launcher.ts'
import { hostLauncher } from '../sandbox/host-launcher.ts'
import type { ShellLauncher } from '../sandbox/launch.ts'
import { pathsNamedIn, shellEnvironment } from '../shell/shell-environment.ts'

/** `missing` says why there is no sandbox, as a clause; undefined when there is one. */
export type FoundSandbox = { readonly launcher: ShellLauncher; readonly missing?: string }

/** Throws a `ConfigError` when there must be a sandbox and there cannot be one. */
export async function findSandbox(config: Config): Promise<FoundSandbox> {
  if (config.isolation === 'none') return { launcher: hostLauncher, missing: 'OPENHANDS_ISOLATION is none' }
  const env = shellEnvironment(config.environment)
  const found = await findBubblewrap({
    dataDir: config.dataDir,
    workdirBase: config.workdirBase,
    keyFiles: config.secretFiles,
    home: homedir(),
    // oxlint-disable-next-line typescript/no-non-null-assertion -- `shellEnvironment` always sets it
    path: env['PATH']!,
    named: pathsNamedIn(env),
    readable: config.sandboxReadable,
  })
  if ('launcher' in found) return found
  if (config.isolation === 'bubblewrap')
    throw new ConfigError(`OPENHANDS_ISOLATION=bubblewrap cannot be had: ${found.missing}.`)
  return { launcher: hostLauncher, missing: found.missing }
}

/** Throws a `ConfigError` when shells cannot be started in the mode that the operator wants: the network would be open. */
export function serverNetwork({ network }: Config, { isolation, isolatesNetwork }: ShellLauncher): ServerNetwork {
  if (isolatesNetwork) return { ...network, modes: ['none', 'allowlist', 'open'] }
  if (network.default.mode === 'open' && network.ceiling.mode === 'open') return { ...network, modes: ['open'] }
  const why = isolation === 'none' ? 'there is no sandbox' : 'sandboxes have no network of their own here'
  throw new ConfigError(
    `OPENHANDS_NETWORK and OPENHANDS_NETWORK_CEILING can only be open: ${why}. Install bubblewrap, or give the container the right to make network namespaces.`,
  )
}
