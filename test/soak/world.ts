/** The conversations of a soak, its requests, and what was wrong with the answers. */
import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'
import { Agent, fetch } from 'undici'
import { mapBounded } from '../../src/lib/map-bounded.ts'
import { PATIENCE_MS } from '../support/patience.ts'
import type { Random } from '../support/random.ts'
import { KEY } from '../support/server.ts'

/** Conversations that there are at a time, nearly. */
export const POPULATION = 150
/** Those of them that nearly all work is done with. The others are closed as idle meanwhile. */
const HOT = 30

/** Conversations deleted concurrently at a rest. */
const REMOVED_AT_A_TIME = 8

/** Answers that say that the soak has asked for what nobody can have; all else that is refused depends on the moment. */
const OWN_MISTAKES: ReadonlySet<number> = new Set([400, 401, 403, 405, 406, 413, 414, 415, 422])

/**
 * A connection may take as long as everything else: the machine may be busy with other work. One that was idle for long
 * is not used again: the server may be closing it.
 */
const CONNECTIONS = new Agent({ connect: { timeout: PATIENCE_MS }, keepAliveTimeout: 1000 })

/** Of failures with the same text, so many are kept. */
const MAX_KEPT_FAILURES = 200

export type Answer = { readonly status: number; readonly body: any } // eslint-disable-line typescript/no-explicit-any

export type WorldOptions = {
  readonly url: string
  readonly modelUrl: string
  readonly receiverUrl: string
  readonly random: Random
  readonly onFailure: (text: string) => void
}

export class World {
  readonly url: string
  readonly modelUrl: string
  readonly receiverUrl: string
  readonly random: Random
  /** The oldest first. */
  readonly ids = new Set<string>()
  readonly failures = new Map<string, number>()
  operations = 0
  readonly #onFailure: (text: string) => void

  constructor({ url, modelUrl, receiverUrl, random, onFailure }: WorldOptions) {
    this.url = url
    this.modelUrl = modelUrl
    this.receiverUrl = receiverUrl
    this.random = random
    this.#onFailure = onFailure
  }

  get failed(): number {
    return this.failures.values().reduce((sum, count) => sum + count, 0)
  }

  /** Any of those that there are; nearly always one of the newest. */
  pick(): string | undefined {
    const ids = [...this.ids]
    const hot = this.random.below(20) === 0 ? ids : ids.slice(-HOT)
    return hot[this.random.below(hot.length)]
  }

  /** The oldest: hardly anybody has asked for it lately. */
  oldest(): string | undefined {
    return this.ids.values().next().value
  }

  async request(method: string, path: string, body?: unknown): Promise<Answer> {
    this.operations += 1
    try {
      const { status, body: answered } = await this.#send(method, path, body)
      const code: unknown = answered?.error
      const isWrong = status >= 500 || OWN_MISTAKES.has(status) || code === 'conversation_damaged'
      if (isWrong) this.fail(`${method} ${withoutIds(path)}: ${status} ${JSON.stringify(answered)?.slice(0, 300)}`)
      return { status, body: answered }
    } catch (error) {
      this.fail(`${method} ${withoutIds(path)}: ${inspect(error, { compact: true, breakLength: Infinity })}`)
      return { status: 0, body: undefined }
    }
  }

  /** To be called with what is the same for failures of one kind. */
  fail(text: string): void {
    const kind = withoutIds(text)
    const count = this.failures.get(kind) ?? 0
    if (count > 0 || this.failures.size < MAX_KEPT_FAILURES) this.failures.set(kind, count + 1)
    if (count === 0) this.#onFailure(text)
  }

  /** Deletes all, and resolves when the server has nothing more to do. `isQuiet` asks the server. */
  async rest(isQuiet: () => Promise<boolean>): Promise<void> {
    for (let some = [...this.ids]; some.length > 0; some = await this.#someLeft()) {
      await mapBounded(some, REMOVED_AT_A_TIME, (id) => this.remove(id))
    }
    const deadline = performance.now() + PATIENCE_MS
    while (!(await isQuiet())) {
      if (performance.now() > deadline) return this.fail('the server was not at rest after everything was deleted')
      await sleep(100)
    }
  }

  async remove(id: string): Promise<void> {
    this.ids.delete(id)
    const { status } = await this.request('DELETE', `/conversations/${id}`)
    if (status !== 204 && status !== 410) this.fail(`DELETE of a conversation that exists: ${status}`)
    const { status: then } = await this.request('GET', `/conversations/${id}`)
    if (then !== 410) this.fail(`GET of a deleted conversation: ${then}`)
  }

  /** Also those whose creation was not answered. */
  async #someLeft(): Promise<string[]> {
    const { body } = await this.request('GET', '/conversations?limit=100')
    return (body?.items ?? []).map(({ id }: { id: string }) => id)
  }

  async #send(method: string, path: string, body: unknown): Promise<Answer> {
    const type = body instanceof Uint8Array ? 'application/octet-stream' : 'application/json'
    const response = await fetch(this.url + path, {
      dispatcher: CONNECTIONS,
      method,
      headers: { authorization: `Bearer ${KEY}`, ...(body !== undefined && { 'content-type': type }) },
      ...(body !== undefined && { body: body instanceof Uint8Array ? Buffer.from(body) : JSON.stringify(body) }),
      signal: AbortSignal.timeout(PATIENCE_MS),
    })
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.startsWith('application/json')
    return { status: response.status, body: isJson ? JSON.parse(text) : text }
  }
}

const withoutIds = (text: string): string => text.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '{id}')
