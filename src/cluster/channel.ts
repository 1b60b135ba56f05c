/**
 * A connection between two instances on which each chunk is authenticated. The only file that knows the form of its frames: a
 * length of four bytes, an HMAC-SHA-256 over the number of the frame and its data, and the data. An empty frame ends a direction.
 * Frames that were changed, repeated, reordered or left out destroy the connection. Only TLS below it encrypts the data.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'

export type ChannelKeys = { readonly send: Buffer; readonly receive: Buffer }

export const MAC_BYTES = 32
const LENGTH_BYTES = 4
const HEAD_BYTES = LENGTH_BYTES + MAC_BYTES
const MAX_FRAME_BYTES = 65_536

/** Has the methods of a socket that an HTTP server and an HTTP client call. */
export class Channel extends Duplex {
  readonly #socket: Socket
  readonly #keys: ChannelKeys
  #received: Buffer = Buffer.alloc(0)
  #sentFrames = 0n
  #receivedFrames = 0n
  #hasEnded = false

  /** The handshake has read `rest` beyond its end. */
  constructor(socket: Socket, keys: ChannelKeys, rest: Buffer) {
    super()
    this.#socket = socket
    this.#keys = keys
    socket.on('data', (chunk: Buffer) => this.#receive(chunk))
    socket.on('end', () => this.#hasEnded || this.destroy(cutOff()))
    socket.on('error', (error) => this.destroy(error))
    socket.on('close', () => this.destroy(this.#hasEnded && this.writableFinished ? undefined : cutOff()))
    socket.on('timeout', () => this.emit('timeout'))
    if (rest.length > 0) this.#receive(rest)
  }

  get remoteAddress(): string | undefined {
    return this.#socket.remoteAddress
  }

  setTimeout(ms: number, onTimeout?: () => void): this {
    if (onTimeout) this.once('timeout', onTimeout)
    this.#socket.setTimeout(ms)
    return this
  }

  setNoDelay(): this {
    return this
  }

  setKeepAlive(): this {
    return this
  }

  ref(): this {
    this.#socket.ref()
    return this
  }

  unref(): this {
    this.#socket.unref()
    return this
  }

  override _read(): void {
    this.#socket.resume()
  }

  override _write(chunk: Buffer, _: BufferEncoding, callback: (error?: Error | null) => void): void {
    this.#send(chunk, callback)
  }

  /** What waits behind a write becomes one frame: HTTP writes the length, the data and the end of each chunk apart. */
  override _writev(chunks: { readonly chunk: Buffer }[], callback: (error?: Error | null) => void): void {
    this.#send(Buffer.concat(chunks.map(({ chunk }) => chunk)), callback)
  }

  #send(data: Buffer, callback: (error?: Error | null) => void): void {
    const frames: Buffer[] = []
    for (let at = 0; at < data.length; at += MAX_FRAME_BYTES)
      frames.push(this.#frame(data.subarray(at, at + MAX_FRAME_BYTES)))
    this.#socket.write(frames.length === 1 && frames[0] ? frames[0] : Buffer.concat(frames), callback)
  }

  override _final(callback: (error?: Error | null) => void): void {
    this.#socket.end(this.#frame(Buffer.alloc(0)), () => callback())
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#socket.destroy()
    callback(error)
  }

  #frame(data: Buffer): Buffer {
    const length = Buffer.alloc(LENGTH_BYTES)
    length.writeUInt32BE(data.length)
    return Buffer.concat([length, macOf(this.#keys.send, this.#sentFrames++, data), data])
  }

  #receive(chunk: Buffer): void {
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk])
    while (this.#received.length >= HEAD_BYTES && !this.#hasEnded && !this.destroyed) {
      const length = this.#received.readUInt32BE()
      if (length > MAX_FRAME_BYTES) return void this.destroy(forgeryError())
      if (this.#received.length < HEAD_BYTES + length) return
      const mac = this.#received.subarray(LENGTH_BYTES, HEAD_BYTES)
      const data = this.#received.subarray(HEAD_BYTES, HEAD_BYTES + length)
      if (!timingSafeEqual(mac, macOf(this.#keys.receive, this.#receivedFrames++, data)))
        return void this.destroy(forgeryError())
      this.#received = this.#received.subarray(HEAD_BYTES + length)
      this.#hasEnded = length === 0
      if (!this.push(this.#hasEnded ? null : data)) this.#socket.pause()
    }
  }
}

function macOf(key: Buffer, frame: bigint, data: Buffer): Buffer {
  const number = Buffer.alloc(8)
  number.writeBigUInt64BE(frame)
  return createHmac('sha256', key).update(number).update(data).digest()
}

const forgeryError = () => new Error('A frame of another instance is not authentic. The connection was closed.')

const cutOff = () => new Error('The connection to another instance was cut off.')
