/** Finds the place that a record names. The only file that decides whether a socket is that of a trusted user. */
import { constants } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { open } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import type { LocalRecord } from '../../access/local-record.ts'
import { isTrusted, trustedOwners } from '../../access/local-record.ts'
import type { FetchTarget } from '../../http/local/local-fetch.ts'

const UNIX = 'unix:'

export type OpenPlace = AsyncDisposable & { readonly place: FetchTarget }

/**
 * Opens a socket on which only trusted users can listen. Returns undefined if others may write its directory, or if it
 * does not exist. An http address says nothing about who listens there: whether it is trusted is up to the caller.
 */
export async function openPlace(dataDir: string, { address }: LocalRecord): Promise<OpenPlace | undefined> {
  const owners = await trustedOwners(dataDir)
  return await openIf(address, async (directory) => isTrusted(await directory.stat(), owners))
}

/** Opens the place of the server in this process. A file system without modes may show the directory of its socket as open to others. */
export async function openOwnPlace({ address }: LocalRecord): Promise<OpenPlace> {
  const foundPlace = await openIf(address, async () => true)
  if (foundPlace) return foundPlace
  throw new Error(`The socket ${address} of this process is gone. Do not remove it while the data directory is used.`)
}

async function openIf(
  address: string,
  mayBeUsed: (directory: FileHandle) => Promise<boolean>,
): Promise<OpenPlace | undefined> {
  if (!isSocket(address)) return { place: { baseUrl: address }, async [Symbol.asyncDispose]() {} }
  const path = address.slice(UNIX.length)
  const directory = await openDirectory(dirname(path))
  if (!directory) return undefined
  const close = () => directory.close()
  if (await mayBeUsed(directory))
    return { place: { socketPath: pathWithin(directory, path) }, [Symbol.asyncDispose]: close }
  await close()
  return undefined
}

export const isSocket = (address: string): boolean => address.startsWith(UNIX)

const openDirectory = (path: string): Promise<FileHandle | undefined> =>
  open(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW).catch(() => undefined)

/** Uses the descriptor where the system can: others may rename what is above the directory, and put their own there. */
function pathWithin({ fd }: FileHandle, path: string): string {
  return process.platform === 'linux' ? `/proc/self/fd/${fd}/${basename(path)}` : path
}
