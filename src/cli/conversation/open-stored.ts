/** Opens the conversations of this machine, or of a server, for a command that asks no model. */
import { leaveProject } from '../../config/leave-project.ts'
import { UsageError } from '../command-line/usage-error.ts'
import { givenServerKey } from '../settings/run-settings.ts'
import type { AgentHost } from './open-host.ts'
import { infoOf, openHost } from './open-host.ts'

type Place = { readonly server: string | undefined; readonly apiKey: string | undefined }

/** Leaves the current directory: relative paths are resolved before. The caller closes the host. */
export async function openStored({ server, apiKey: givenKey }: Place, signal: AbortSignal): Promise<AgentHost> {
  const dataDir = await leaveProject({ createsIt: server === undefined, signal })
  const apiKey = await givenServerKey(givenKey)
  if (server !== undefined && apiKey === undefined)
    throw new UsageError(`no key is set for ${server}: set OPENHANDS_MASTER_KEY, or give --api-key.`)
  await using stack = new AsyncDisposableStack()
  const host = stack.use(await openHost({ server, apiKey, dataDir, signal }))
  if (server !== undefined) await infoOf(host, signal)
  const heldStack = stack.move()
  return { ...host, [Symbol.asyncDispose]: () => heldStack.disposeAsync() }
}
