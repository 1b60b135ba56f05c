/**
 * Lines of standard input that are messages. The SDK ignores the others, so that a client would wait: they are refused here. It also
 * answers nothing after the end of its input: that comes when all requests have their answers.
 */
import type { JSONRPCMessage } from '@modelcontextprotocol/server'
import { INVALID_REQUEST, PARSE_ERROR, parseJSONRPCMessage } from '@modelcontextprotocol/server'
import { Transform } from 'node:stream'
import type { TransformCallback } from 'node:stream'

/** The SDK ends the connection at a longer line. */
export const MAX_LINE_BYTES = 10 * 1024 * 1024

type RpcError = { readonly code: number; readonly message: string }
type Refuse = (refusal: {
  readonly jsonrpc: '2.0'
  readonly id: string | number | null
  readonly error: RpcError
}) => void

const NEWLINE = 0x0a
/** A tool answers within 45 seconds. */
const LAST_ANSWERS_MS = 60_000
/** It lasts as long as its client. */
const LISTEN = 'subscriptions/listen'

/** Its chunks are whole lines. A last line without an end counts. */
export class MessageLines extends Transform {
  readonly #refuse: Refuse
  #parts: Buffer[] = []
  #bytes = 0
  /** Requests without an answer. */
  readonly #open = new Set<unknown>()
  #end: (() => void) | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(refuse: Refuse) {
    super()
    this.#refuse = refuse
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, callback: TransformCallback): void {
    let from = 0
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      this.#add(chunk.subarray(from, end))
      this.#endLine()
      from = end + 1
    }
    this.#add(chunk.subarray(from))
    callback()
  }

  override _flush(callback: TransformCallback): void {
    this.#endLine()
    if (this.#open.size === 0) return callback()
    this.#end = () => callback()
    this.#timer = setTimeout(() => this.#finish(), LAST_ANSWERS_MS)
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    clearTimeout(this.#timer)
    callback(error)
  }

  /** Call it with each message that is sent to the client. */
  noteSent(message: JSONRPCMessage): void {
    if (!('method' in message)) this.#close(message.id)
  }

  #note(message: JSONRPCMessage): void {
    if (!('method' in message)) return
    if (message.method === 'notifications/cancelled') this.#close(message.params?.['requestId'])
    else if ('id' in message && message.method !== LISTEN) this.#open.add(message.id)
  }

  #close(id: unknown): void {
    if (this.#open.delete(id) && this.#open.size === 0) this.#finish()
  }

  #finish(): void {
    clearTimeout(this.#timer)
    this.#end?.()
    this.#end = undefined
  }

  #add(part: Buffer): void {
    this.#bytes += part.length
    if (this.#bytes < MAX_LINE_BYTES) this.#parts.push(part)
    else this.#parts = []
  }

  #endLine(): void {
    const isTooLong = this.#bytes >= MAX_LINE_BYTES
    const line = Buffer.concat(this.#parts).toString()
    this.#parts = []
    this.#bytes = 0
    if (isTooLong) return this.#answer(null, INVALID_REQUEST, `A line must have less than ${MAX_LINE_BYTES} bytes.`)
    if (line.trim() === '') return
    let value: unknown
    try {
      value = JSON.parse(line)
    } catch {
      return this.#answer(null, PARSE_ERROR, 'The line is not JSON.')
    }
    const message = messageIn(value)
    if (!message)
      return this.#answer(idOf(value), INVALID_REQUEST, 'Send one message of JSON-RPC 2.0 in each line, and no batch.')
    this.#note(message)
    this.push(`${line}\n`)
  }

  #answer(id: string | number | null, code: number, message: string): void {
    this.#refuse({ jsonrpc: '2.0', id, error: { code, message } })
  }
}

function messageIn(value: unknown): JSONRPCMessage | undefined {
  try {
    return parseJSONRPCMessage(value)
  } catch {
    return undefined
  }
}

function idOf(value: unknown): string | number | null {
  const id: unknown = Object(value).id
  return typeof id === 'string' || typeof id === 'number' ? id : null
}
