/**
 * A `fetch` for URLs that a client specified: only to addresses that are public or allowed, with streamed responses.
 * Follows no redirect.
 */
import type { Agent, fetch as undiciFetch } from 'undici'
import type { Lookup } from './lookup.ts'
import { lookupAll } from './lookup.ts'
import { createGuardedConnector } from './guarded-connector.ts'
import { createAddressRules } from './public-address.ts'

export type UrlFetch = (url: string | URL, init?: RequestInit) => Promise<Response>

export type GuardedFetch = {
  /** Rejects with `AddressRefused` as the cause. Only the signal limits the time. */
  readonly fetch: UrlFetch
  /** Aborts requests in progress. */
  readonly close: () => Promise<void>
}

/** `allow` as in `createAddressRules`. */
export function createGuardedFetch({
  allow,
  lookup = lookupAll,
}: {
  readonly allow: readonly string[]
  readonly lookup?: Lookup
}): GuardedFetch {
  // Loaded with the first request: it costs memory.
  let client: Promise<Client> | undefined
  return {
    async fetch(url, init = {}) {
      const { agent, send } = await (client ??= loadClient(allow, lookup))
      // The answer must not be compressed: a few bytes could unfold to any number.
      const headers = new Headers(init.headers)
      headers.set('accept-encoding', 'identity')
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- undici's own types of the same standard
      const sentInit = { ...init, headers, redirect: 'manual', dispatcher: agent } as unknown as Parameters<
        typeof send
      >[1]
      return await send(url, sentInit)
    },
    async close() {
      await (await client)?.agent.destroy()
    },
  }
}

type Client = { readonly agent: Agent; readonly send: typeof undiciFetch }

async function loadClient(allow: readonly string[], lookup: Lookup): Promise<Client> {
  const { Agent, fetch } = await import('undici')
  const connect = await createGuardedConnector(createAddressRules(allow), lookup)
  return { agent: new Agent({ connect, headersTimeout: 0, bodyTimeout: 0, allowH2: false }), send: fetch }
}
