/** Follows a stream over any number of connections: each one continues at the cursor that the last one reached. */
import type { ErrorBody } from '../../contract/problem.ts'
import { AgentServerError } from '../request/agent-server-error.ts'
import { delayAfter, MAX_DELAY_MS, sleep } from '../request/delay.ts'
import { requireSignal } from '../request/sendable.ts'
import type { StreamFrame, StreamRequest, StreamSource } from './stream-source.ts'

export type FollowRequest = Pick<StreamRequest, 'path' | 'cursor' | 'query'> & {
  /** The attempts of the first connection, which is a request like any other. */
  readonly maxRetries: number
  readonly signal?: AbortSignal | undefined
  /** Called before each wait for the next connection. */
  readonly onDisconnect?: ((reason: AgentServerError) => void) | undefined
  /** How long the server may be unreachable before the reader gets the error. */
  readonly giveUpAfterMs?: number | undefined
}

/** A restart, a deployment or a short outage of a network. */
const GIVE_UP_AFTER_MS = 5 * 60_000

/** A frame with data whose `type` is not the end of a stream. */
export type FollowedFrame = { readonly cursor: string | undefined; readonly data: { readonly type: string } }

/**
 * Yields every frame once and in order. Returns when the conversation is deleted. Throws an `AgentServerError` that
 * another attempt would not change, or after `giveUpAfterMs` without a connection; and the reason of the signal.
 */
export async function* follow(source: StreamSource, request: FollowRequest): AsyncGenerator<FollowedFrame> {
  requireSignal(request.signal)
  const { path, query, onDisconnect } = request
  const signal = request.signal ?? new AbortController().signal
  const outage = new Outage(request.giveUpAfterMs ?? GIVE_UP_AFTER_MS)
  let { cursor } = request
  for (;;) {
    let reason: AgentServerError
    try {
      const maxRetries = outage.isFirst ? request.maxRetries : 0
      for await (const frame of source({ path, query, cursor, signal, maxRetries })) {
        const data = dataOf(frame)
        if (data) outage.end()
        else outage.open()
        if (data?.type === 'deleted') return
        throwEnd(data)
        cursor = frame.cursor ?? cursor
        if (data) yield { cursor, data }
      }
      reason = new AgentServerError('connection_failed', 'The connection of the stream ended.')
    } catch (error) {
      signal.throwIfAborted()
      if (!(error instanceof AgentServerError)) throw error
      if (!outage.isFirst && isDeleted(error)) return
      if (outage.isFirst || !isTemporary(error)) throw error
      reason = error
    }
    outage.begin(reason)
    onDisconnect?.(reason)
    await sleep(outage.delayMs(reason), signal)
  }
}

/**
 * How long and how often connections have failed. One that opens and closes again without an event is a failure, too,
 * unless it lasted.
 */
class Outage {
  /** Whether there has not been a connection yet. */
  isFirst = true
  readonly #limitMs: number
  #failures = 0
  #since: number | undefined
  #openedAt: number | undefined

  constructor(limitMs: number) {
    this.#limitMs = limitMs
  }

  open(): void {
    this.isFirst = false
    this.#openedAt ??= performance.now()
  }

  end(): void {
    this.open()
    this.#failures = 0
    this.#since = undefined
  }

  /** Throws the reason when the outage has lasted too long. */
  begin(reason: AgentServerError): void {
    const now = performance.now()
    if (this.#openedAt !== undefined && now - this.#openedAt > MAX_DELAY_MS) this.end()
    this.#openedAt = undefined
    this.#failures += 1
    this.#since ??= now
    if (now - this.#since > this.#limitMs) throw reason
  }

  delayMs({ retryAfterMs }: AgentServerError): number {
    return delayAfter(this.#failures, retryAfterMs)
  }
}

function dataOf({ data }: StreamFrame): FollowedFrame['data'] | undefined {
  return isTyped(data) ? data : undefined
}

const isTyped = (data: unknown): data is { readonly type: string } =>
  typeof data === 'object' && data !== null && 'type' in data && typeof data.type === 'string'

/** Throws for a frame after which the server ends the stream. */
function throwEnd(data: { type: string } | undefined): void {
  if (!data) return
  switch (data.type) {
    case 'server_closing':
      throw new AgentServerError('unavailable', 'The server is stopping.')
    case 'lagged':
      throw new AgentServerError('connection_failed', 'The stream was read too slowly, and the server ended it.')
    case 'error':
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the `ErrorFrame` of the contract
      throw AgentServerError.fromBody(data as unknown as ErrorBody)
  }
}

/** Returns false for removed hooks: the client must learn that it will not be asked any more. */
const isDeleted = ({ status, code }: AgentServerError): boolean =>
  (status === 404 || status === 410) && code !== 'client_hooks_not_found'

const FINAL: ReadonlySet<AgentServerError['code']> = new Set(['unexpected_response', 'invalid_argument', 'server_lost'])

/** Returns true for a lost connection, which has no status, and for a frame that said that the stream failed. */
function isTemporary({ status, code }: AgentServerError): boolean {
  if (status === undefined) return !FINAL.has(code)
  return status >= 500 || status === 429 || status === 408
}
