/** One open WebSocket: frames in and out at the peer's pace, heartbeats, and close. Knows nothing about the content. */
import type { RawData, WebSocket } from 'ws'

/** Milliseconds; a peer that has not answered a ping by the next one is considered gone. */
const PING_MS = 15_000
/** A peer that reads nothing for this long is disconnected, in milliseconds. */
const STALL_TIMEOUT_MS = 60_000

/** The number of buffered bytes above which the next frame waits until the previous ones have been sent. */
const HIGH_WATER_BYTES = 64 * 1024
/** Received frames, and their bytes, that may wait; above that nothing more is read from the peer. */
const MAX_WAITING = 16
const MAX_WAITING_BYTES = 1024 * 1024

const TEXT = { binary: false } as const

export type ConnectionOptions = { readonly pingMs?: number; readonly stallMs?: number }

export class SocketConnection {
  /** The peer's frames, in order and on demand; they end with the connection. A binary frame yields an empty string. */
  readonly frames: AsyncIterableIterator<string, void, void> = this.#take()
  readonly #ws: WebSocket
  readonly #stallMs: number
  readonly #gone = new AbortController()
  readonly #waiting: Buffer[] = []
  #waitingBytes = 0
  #wake: (() => void) | undefined
  #isAlive = true
  #isEnding = false

  constructor(ws: WebSocket, { pingMs = PING_MS, stallMs = STALL_TIMEOUT_MS }: ConnectionOptions = {}) {
    this.#ws = ws
    this.#stallMs = stallMs
    ws.on('message', (data, isBinary) => this.#put(data, isBinary))
    ws.on('pong', () => (this.#isAlive = true))
    const pinging = setInterval(() => this.#ping(), pingMs)
    ws.on('close', () => {
      clearInterval(pinging)
      this.#gone.abort()
      this.#wake?.()
    })
  }

  /** Aborted when the connection closes. */
  get signal(): AbortSignal {
    return this.#gone.signal
  }

  async *#take(): AsyncGenerator<string, void, void> {
    while (!this.signal.aborted && !this.#isEnding) {
      const frame = this.#waiting.shift()
      if (frame) {
        this.#waitingBytes -= frame.length
        if (this.#ws.isPaused && this.#hasRoom()) this.#ws.resume()
        yield frame.toString()
        continue
      }
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#wake = resolve
      await promise
    }
  }

  async send(frame: object): Promise<void> {
    await this.sendAll([Buffer.from(JSON.stringify(frame))])
  }

  /** Resolves when the peer can take more, or is gone. The buffers are sent without a copy, and may be shared. */
  async sendAll(frames: readonly Buffer[]): Promise<void> {
    const last = frames.at(-1)
    if (!last || this.#ws.readyState !== this.#ws.OPEN) return
    for (const frame of frames.slice(0, -1)) this.#ws.send(frame, TEXT)
    const { promise: leaving, resolve } = Promise.withResolvers<void>()
    // An error means that the peer is gone, which `signal` reports.
    this.#ws.send(last, TEXT, () => resolve())
    if (this.#ws.bufferedAmount > HIGH_WATER_BYTES) await this.#orStalled(leaving)
  }

  /**
   * Sends a last frame with the reason and closes with this code: the peer receives what was sent before, if it still
   * reads.
   */
  async end(frame: object, code: number): Promise<void> {
    // What the peer still sends is not executed.
    this.#isEnding = true
    this.#wake?.()
    if (this.#ws.readyState === this.#ws.OPEN) {
      const { promise: leaving, resolve } = Promise.withResolvers<void>()
      this.#ws.send(JSON.stringify(frame), TEXT, () => resolve())
      await this.#orStalled(leaving)
    }
    this.#ws.close(code)
  }

  #put(data: RawData, isBinary: boolean): void {
    this.#isAlive = true
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as `binaryType` has it when nobody changes that
    const frame = isBinary ? EMPTY : (data as Buffer)
    this.#waiting.push(frame)
    this.#waitingBytes += frame.length
    if (!this.#hasRoom()) this.#ws.pause()
    this.#wake?.()
  }

  #hasRoom(): boolean {
    return this.#waiting.length < MAX_WAITING && this.#waitingBytes < MAX_WAITING_BYTES
  }

  /** Skips a peer that is not being read: its pongs are not read either. */
  #ping(): void {
    if (this.#ws.isPaused) return
    if (!this.#isAlive) return this.#ws.terminate()
    this.#isAlive = false
    this.#ws.ping()
  }

  async #orStalled(leaving: Promise<void>): Promise<void> {
    const timer = setTimeout(() => this.#ws.terminate(), this.#stallMs)
    await leaving
    clearTimeout(timer)
  }
}

const EMPTY = Buffer.alloc(0)
