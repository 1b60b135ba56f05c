/** Requests to places that a client named: only to addresses that are public or allowed. Redirects are not followed. */
import type { Agent, request } from 'undici'
import { orAborted } from '../lib/bounded-wait.ts'
import type { Lookup } from './guarded-connector.ts'
import { createGuardedConnector, foreseeRefusal, lookupAll } from './guarded-connector.ts'
import type { AddressRules } from './public-address.ts'
import { createAddressRules } from './public-address.ts'

export type PostOptions = {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly signal: AbortSignal
}

export type PostAnswer = { readonly status: number; readonly retryAfter: string | undefined }

export interface SafeFetch {
  /**
   * Resolves when the answer is there whole, or as much of it as is looked at; none of it is given out. Throws
   * `AddressRefused`, the reason of the signal, or what the network says. The signal alone bounds the time.
   */
  post(url: string, options: PostOptions): Promise<PostAnswer>
  /** Why nothing would be sent there now, as a clause; undefined also when the name leads nowhere yet. */
  refusal(url: string): Promise<string | undefined>
  /** Breaks off what is under way. */
  close(): Promise<void>
}

export type SafeFetchOptions = {
  /** As `createAddressRules` takes it. */
  readonly allow: readonly string[]
  readonly lookup?: Lookup
}

/** More of an answer is not read; its connection is ended instead. */
const MAX_ANSWER_BYTES = 64 * 1024

export function createSafeFetch({ allow, lookup = lookupAll }: SafeFetchOptions): SafeFetch {
  const rules = createAddressRules(allow)
  // Loaded for the first request: it costs memory that a server without callbacks need not pay.
  let client: Promise<Client> | undefined
  const load = () => (client ??= loadClient(rules, lookup))

  return {
    async post(url, { headers, body, signal }) {
      signal.throwIfAborted()
      const { agent, send } = await load()
      const sent = send(url, { dispatcher: agent, method: 'POST', headers, body, signal })
      // undici looks at the signal once it is connected: a handshake that nobody answers would hold up whoever waits.
      const answer = await orAborted(sent, signal, ({ body }) => body.on('error', () => {}).destroy())
      await readSome(answer.body)
      const retryAfter = answer.headers['retry-after']
      return { status: answer.statusCode, retryAfter: [retryAfter].flat()[0] }
    },

    refusal: (url) => foreseeRefusal(rules, lookup, url),

    async close() {
      await (await client)?.agent.destroy()
    },
  }
}

type Client = { readonly agent: Agent; readonly send: typeof request }

async function loadClient(rules: AddressRules, lookup: Lookup): Promise<Client> {
  const { Agent, request } = await import('undici')
  const connect = await createGuardedConnector(rules, lookup)
  // Its probe for HTTP/2 never ends when the first request to an origin cannot be written.
  return { agent: new Agent({ connect, headersTimeout: 0, bodyTimeout: 0, allowH2: false }), send: request }
}

/** To its end, so that the connection can be used again, but not without end. Throws when it is cut off. */
async function readSome(body: AsyncIterable<Uint8Array>): Promise<void> {
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.length
    if (bytes > MAX_ANSWER_BYTES) return
  }
}
