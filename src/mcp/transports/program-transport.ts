/**
 * The stdio transport over a program in the sandbox: one JSON message per line. Own code and not the SDK's, which
 * starts its process itself, outside the sandbox, and reads as fast as the server writes.
 */
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client'
import { ComplexJson, parseUntrustedJson } from '../../lib/json/untrusted-json.ts'
import type { Program } from '../../shell/program.ts'
import { MAX_DEPTH, MAX_NAMES, MAX_VALUES } from './json-gauge.ts'
import { MAX_MESSAGE_BYTES, Pace } from './pace.ts'

/** The size of messages that the server does not read. */
const MAX_UNREAD_BYTES = 4 * 1024 ** 2

/** Lines handled before other work has a turn. */
const LINES_AT_A_TIME = 100

/** Lines other than messages, such as log lines, before the server is given up. */
const MAX_GARBAGE_LINES = 1000

const LINE_FEED = 10

export class ProgramTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: Transport['onmessage']
  readonly #program: Program
  readonly #pace = new Pace()
  /** The line that is not complete yet. */
  #parts: Buffer[] = []
  #partBytes = 0
  #garbage = 0
  #isClosed = false
  #closing: Promise<void> = Promise.resolve()
  /** Why it was closed from this side, as a clause. */
  fault: string | undefined

  constructor(program: Program) {
    this.#program = program
  }

  start(): Promise<void> {
    this.#read().catch((error: unknown) => this.#fail(`its output could not be read: ${String(error)}`))
    void this.#program.ended.then(({ reason }) => this.#fail(reason))
    return Promise.resolve()
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const { stdin } = this.#program
    if (this.#isClosed || stdin.destroyed) throw new Error('The server has ended.')
    if (stdin.writableLength > MAX_UNREAD_BYTES) {
      this.#fail('it does not read its input')
      throw new Error('The server does not read its input.')
    }
    stdin.write(`${JSON.stringify(message)}\n`)
    return Promise.resolve()
  }

  /** Resolves when the program has ended, also for later calls. */
  close(): Promise<void> {
    if (!this.#isClosed) {
      // Set first: a listener of its end may close it again.
      this.#isClosed = true
      this.#closing = this.#close()
    }
    return this.#closing
  }

  async #close(): Promise<void> {
    // Calls end now; the process may take a moment.
    this.onclose?.()
    await this.#program.end()
  }

  async #read(): Promise<void> {
    for await (const chunk of this.#program.stdout) {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- bytes, as no encoding is set
      await this.#take(chunk as Buffer)
      if (this.#isClosed) return
    }
  }

  async #take(chunk: Buffer): Promise<void> {
    let from = 0
    let lines = 0
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, from)) {
      this.#keep(chunk.subarray(from, end))
      from = end + 1
      this.#handleLine(Buffer.concat(this.#parts).toString())
      this.#parts = []
      this.#partBytes = 0
      if (this.#isClosed) return
      if (++lines % LINES_AT_A_TIME === 0) await wait(0)
    }
    this.#keep(Buffer.from(chunk.subarray(from)))
    const ms = this.#pace.take(lines, chunk.length)
    if (ms > 0) await wait(ms)
  }

  #keep(part: Buffer): void {
    if (part.length === 0) return
    this.#partBytes += part.length
    if (this.#partBytes > MAX_MESSAGE_BYTES)
      return this.#fail(`it sent a message of more than ${MAX_MESSAGE_BYTES} bytes`)
    this.#parts.push(part)
  }

  #handleLine(line: string): void {
    const text = line.trim()
    if (text === '' || this.#isClosed) return
    const message = parseMessage(text)
    // Many servers print log lines.
    if (message instanceof ComplexJson) this.#fail(`it sent a message that ${message.message}`)
    else if (message) this.onmessage?.(message)
    else if (++this.#garbage > MAX_GARBAGE_LINES)
      this.#fail('it writes other lines than messages to its standard output')
  }

  #fail(reason: string): void {
    this.fault ??= reason
    this.#parts = []
    void this.close()
  }
}

/** Undefined for anything else. */
function parseMessage(text: string): JSONRPCMessage | ComplexJson | undefined {
  try {
    const value = parseUntrustedJson(text, { depth: MAX_DEPTH, values: MAX_VALUES, names: MAX_NAMES })
    const isMessage = typeof value === 'object' && value !== null && 'jsonrpc' in value
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the SDK checks the rest
    return isMessage ? (value as JSONRPCMessage) : undefined
  } catch (error) {
    return error instanceof ComplexJson ? error : undefined
  }
}

/** Keeps the event loop alive: a wait of 0 is a turn of the event loop. */
const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))
