/**
 * Requests to places that a client named. Which address a name leads to is asked once per connection, judged, and that
 * very address is connected to: a name that leads elsewhere a moment later leads nowhere. Redirects are not followed.
 */
import { lookup as askSystem } from 'node:dns/promises'
import { isIP } from 'node:net'
import type { LookupFunction } from 'node:net'
import { callbackify } from 'node:util'
import type { Agent, buildConnector, request } from 'undici'
import { createAddressRules } from './public-address.ts'
import type { AddressRules } from './public-address.ts'

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
  /** Every address of a name. Default: as the system resolves it, `/etc/hosts` and all. */
  readonly lookup?: (hostname: string) => Promise<{ address: string; family: number }[]>
}

export class AddressRefused extends Error {
  override readonly name = 'AddressRefused'
}

/** More of an answer is not read; its connection is ended instead. */
const MAX_ANSWER_BYTES = 64 * 1024

const CONNECT_TIMEOUT_MS = 10_000

/** What a registration waits for at most; a delivery has its own limit. */
const FORESEE_TIMEOUT_MS = 3000

// libuv keeps half of its threads from lookups: a name server that is silent cannot hold up the files of the logs.
const askSystemForAll = (hostname: string) => askSystem(hostname, { all: true })

export function createSafeFetch({ allow, lookup = askSystemForAll }: SafeFetchOptions): SafeFetch {
  const rules = createAddressRules(allow)

  /** Those that may be connected to, at least one. */
  const permitted = async (hostname: string) => {
    const addresses = await lookup(hostname)
    const refusals = addresses.map(({ address }) => rules.refusal(address, hostname))
    const open = addresses.filter((_, at) => refusals[at] === undefined)
    if (open.length === 0) throw new AddressRefused(refusals[0] ?? 'it has no address')
    return open
  }
  // Loaded for the first request: it costs memory that a server without callbacks need not pay.
  let client: Promise<Client> | undefined
  const load = () => (client ??= loadClient(rules, permitted))

  return {
    async post(url, { headers, body, signal }) {
      signal.throwIfAborted()
      const { agent, send } = await load()
      const answer = await send(url, { dispatcher: agent, method: 'POST', headers, body, signal })
      await readSome(answer.body)
      const retryAfter = answer.headers['retry-after']
      return { status: answer.statusCode, retryAfter: [retryAfter].flat()[0] }
    },

    async refusal(url) {
      const hostname = new URL(url).hostname.replace(/^\[|\]$/g, '')
      if (isIP(hostname)) return rules.refusal(hostname, hostname)
      const late = Promise.withResolvers<undefined>()
      const timer = setTimeout(() => late.resolve(undefined), FORESEE_TIMEOUT_MS)
      try {
        await Promise.race([permitted(hostname), late.promise])
        return undefined
      } catch (error) {
        // A name that leads nowhere may do so tomorrow.
        return error instanceof AddressRefused ? error.message : undefined
      } finally {
        clearTimeout(timer)
      }
    },

    async close() {
      await (await client)?.agent.destroy()
    },
  }
}

type Client = { readonly agent: Agent; readonly send: typeof request }
type Permitted = (hostname: string) => Promise<{ address: string; family: number }[]>

async function loadClient(rules: AddressRules, permitted: Permitted): Promise<Client> {
  const { Agent, buildConnector, request } = await import('undici')
  const connect = guarded(
    buildConnector({ lookup: asNodeLooksUp(permitted), timeout: CONNECT_TIMEOUT_MS, allowH2: false }),
    rules,
  )
  return { agent: new Agent({ connect, headersTimeout: 0, bodyTimeout: 0 }), send: request }
}

/** Nothing is looked up for an address in the URL, so it is judged here; and once more what the system says is at the other end. */
function guarded(connector: buildConnector.connector, rules: AddressRules): buildConnector.connector {
  return (options, callback) => {
    const { hostname } = options
    const refusal = isIP(hostname) ? rules.refusal(hostname, hostname) : undefined
    if (refusal !== undefined) return queueMicrotask(() => callback(new AddressRefused(refusal), null))
    connector(options, (error, socket) => {
      if (error) return callback(error, null)
      const met = rules.refusal(socket.remoteAddress ?? '0.0.0.0', hostname)
      if (met === undefined) return callback(null, socket)
      socket.destroy()
      callback(new AddressRefused(met), null)
    })
  }
}

function asNodeLooksUp(permitted: Permitted): LookupFunction {
  const ask = callbackify(permitted)
  return (hostname, { all }, callback) => {
    ask(hostname, (error, addresses) => {
      if (error) callback(error, '')
      else if (all) callback(null, addresses)
      else callback(null, addresses[0]!.address, addresses[0]!.family)
    })
  }
}

/** To its end, so that the connection can be used again, but not without end. Throws when it is cut off. */
async function readSome(body: AsyncIterable<Uint8Array>): Promise<void> {
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.length
    if (bytes > MAX_ANSWER_BYTES) return
  }
}
