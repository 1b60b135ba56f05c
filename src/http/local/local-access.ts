/**
 * Opens the server to programs of the same user that use the same data directory: a socket, a credential that is made at
 * each start and acts as the master key on these connections only, and the record of both next to the lock.
 */
import type { FastifyInstance } from 'fastify'
import { readLocalRecord, removeLocalRecord, writeLocalRecord } from '../../access/local-record.ts'
import type { LocalConnections } from './local-connections.ts'
import type { SocketPlace } from './local-socket.ts'
import { placeOfSocket, removeLeftSocket } from './local-socket.ts'
import { isOutOfRoom } from '../../lib/error-code.ts'
import type { Logger } from '../../telemetry/logger.ts'

export type LocalAccessOptions = {
  /** It is locked. */
  readonly dataDir: string
  readonly credential: string
  /** The connections on which the credential is accepted. */
  readonly connections: LocalConnections
  /** The URL at which the server listens for others; undefined: nowhere. */
  readonly url: string | undefined
  readonly logger: Logger
}

export type LocalAccess = {
  /** `unix:` and a path, or an http URL. */
  readonly address: string
  /** Stops listening immediately. Resolves when all connections are closed. */
  readonly close: () => Promise<void>
}

/** Removes the record when `started` is disposed. */
export async function openLocalAccess(
  http: FastifyInstance,
  startedParts: AsyncDisposableStack,
  options: LocalAccessOptions,
): Promise<LocalAccess> {
  const { dataDir, credential } = options
  const leftRecord = await readLocalRecord(dataDir)
  if (leftRecord && 'address' in leftRecord) await removeLeftSocket(pathOf(leftRecord.address))
  options.connections.watch(http.server)
  const local = await listen(http, options)
  startedParts.defer(async () => {
    await removeLocalRecord(dataDir)
  })
  const record = { address: local.address, credential, ...(options.url !== undefined && { url: options.url }) }
  await writeLocalRecord(dataDir, record).catch(async (error: unknown) => {
    // Clients can still read on a full disk, and make room by deleting.
    if (!isOutOfRoom(error)) {
      await local.close()
      throw error
    }
    options.logger.warn({ err: error }, 'other programs on this machine cannot find this server')
  })
  return local
}

const UNIX = 'unix:'
const pathOf = (address: string): string => (address.startsWith(UNIX) ? address.slice(UNIX.length) : '')

/** A file system may have no sockets: then other programs use an address for this machine only. */
async function listen(http: FastifyInstance, { dataDir, logger }: LocalAccessOptions): Promise<LocalAccess> {
  try {
    return await listenOnSocket(http, await placeOfSocket(dataDir))
  } catch (error) {
    logger.warn({ err: error }, 'there is no local socket')
    return { address: await http.listen({ host: '127.0.0.1', port: 0 }), close: () => http.close() }
  }
}

async function listenOnSocket(http: FastifyInstance, place: SocketPlace): Promise<LocalAccess> {
  try {
    await http.listen({ path: place.listenAt, listenTextResolver: () => `Server listening at ${UNIX}${place.path}` })
  } catch (error) {
    await place[Symbol.asyncDispose]()
    throw error
  }
  return {
    address: UNIX + place.path,
    async close() {
      await http.close()
      await place[Symbol.asyncDispose]()
    },
  }
}
