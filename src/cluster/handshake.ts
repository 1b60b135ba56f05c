/**
 * Authenticates both ends of a connection between instances by a key that only those of one database have. Each end chooses a
 * nonce, and both nonces and the number of the asked instance derive the keys of the connection: nothing that was recorded on
 * another connection is accepted on this one.
 */
import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Socket } from 'node:net'
import { afterRead } from '../lib/bounded-wait.ts'
import { Channel, MAC_BYTES } from './channel.ts'
import { bindingOf } from './tls.ts'

const NONCE_BYTES = 32
const NUMBER_BYTES = 8

/** How long the other end may take, in milliseconds: longer than a silence, which says more. */
const HANDSHAKE_MS = 7000

export const deriveClusterKey = (material: string): Buffer =>
  Buffer.from(hkdfSync('sha256', material, '', 'agent-server between instances v1', 32))

/** The end that connects, to one certain instance. Rejects if another one answers, or none that has the key. */
export async function greet(socket: Socket, key: Buffer, instance: number): Promise<Channel> {
  return await orDestroyed(socket, async (reader) => {
    const nonce = randomBytes(NONCE_BYTES)
    socket.write(nonce)
    const answer = await reader.take(NUMBER_BYTES + NONCE_BYTES + MAC_BYTES)
    const foundInstance = answer.readBigUInt64BE()
    const theirs = answer.subarray(NUMBER_BYTES, NUMBER_BYTES + NONCE_BYTES)
    const proofs = proofsOf(key, bindingOf(socket), foundInstance, nonce, theirs)
    requireEqual(answer.subarray(NUMBER_BYTES + NONCE_BYTES), proofs('asked'))
    if (foundInstance !== BigInt(instance))
      throw new Error(`Instance ${foundInstance} answers at the address of instance ${instance}.`)
    socket.write(proofs('asking'))
    return new Channel(socket, { send: proofs('request'), receive: proofs('response') }, reader.end())
  })
}

/** The end that listens. Rejects if the other one does not have the key. */
export async function admit(socket: Socket, key: Buffer, own: number): Promise<Channel> {
  return await orDestroyed(socket, async (reader) => {
    const theirs = await reader.take(NONCE_BYTES)
    const nonce = randomBytes(NONCE_BYTES)
    const number = Buffer.alloc(NUMBER_BYTES)
    number.writeBigUInt64BE(BigInt(own))
    const proofs = proofsOf(key, bindingOf(socket), BigInt(own), theirs, nonce)
    socket.write(Buffer.concat([number, nonce, proofs('asked')]))
    requireEqual(await reader.take(MAC_BYTES), proofs('asking'))
    return new Channel(socket, { send: proofs('response'), receive: proofs('request') }, reader.end())
  })
}

async function orDestroyed(socket: Socket, shake: (reader: HandshakeReader) => Promise<Channel>): Promise<Channel> {
  const timer = setTimeout(() => afterRead(() => socket.destroy()), HANDSHAKE_MS)
  try {
    return await shake(new HandshakeReader(socket))
  } catch (error) {
    socket.destroy()
    throw error
  } finally {
    clearTimeout(timer)
  }
}

/**
 * The label separates the proofs and the keys of both directions: none can be sent back. The binding makes them useless on
 * another TLS connection, so that another certificate of the authority is of no use between the two ends.
 */
const proofsOf =
  (key: Buffer, binding: Buffer, instance: bigint, asking: Buffer, askedNonce: Buffer) =>
  (label: string): Buffer =>
    createHmac('sha256', key).update(`${label} ${instance} `).update(binding).update(asking).update(askedNonce).digest()

function requireEqual(actual: Buffer, expectation: Buffer): void {
  if (!timingSafeEqual(actual, expectation))
    throw new Error('The other end does not have the key of this database, so it is not an instance of this cluster.')
}

class HandshakeReader {
  readonly #socket: Socket
  #read: Buffer = Buffer.alloc(0)
  #wake = () => {}
  #failure: Error | undefined

  constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', this.#onData).on('error', this.#onFailure).on('close', this.#onFailure)
    socket.on('end', this.#onFailure)
  }

  async take(bytes: number): Promise<Buffer> {
    while (this.#read.length < bytes) {
      if (this.#failure) throw this.#failure
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#wake = resolve
      await promise
    }
    const takenBytes = this.#read.subarray(0, bytes)
    this.#read = this.#read.subarray(bytes)
    return takenBytes
  }

  /** Returns what was read beyond the handshake. The socket must get its next listeners in the same turn. */
  end(): Buffer {
    this.#socket.off('data', this.#onData).off('error', this.#onFailure).off('close', this.#onFailure)
    this.#socket.off('end', this.#onFailure)
    return this.#read
  }

  readonly #onData = (chunk: Buffer) => {
    this.#read = Buffer.concat([this.#read, chunk])
    this.#wake()
  }

  readonly #onFailure = (error?: unknown) => {
    this.#failure ??= error instanceof Error ? error : new Error('The other end closed the connection.')
    this.#wake()
  }
}
