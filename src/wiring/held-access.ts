/** Lets requests and connections begin only while this instance may act. Loaded by instances that share a database only. */
import type { Fetch } from '../llm/connection/pooled-fetch.ts'
import type { OutboundConnector } from '../network/outbound-connector.ts'
import type { UrlFetch } from '../security/guarded-fetch.ts'
import type { Lease } from '../storage/lease/lease.ts'

export type HeldAccess = {
  readonly toModels: (fetch: Fetch) => Fetch
  readonly toMcp: (fetch: UrlFetch) => UrlFetch
  readonly toHosts: (connector: OutboundConnector) => OutboundConnector
}

export const createHeldAccess = (lease: Lease): HeldAccess => ({
  toModels: (fetch) => async (url, init) => {
    await lease.whenHeld(init?.signal ?? undefined)
    return await fetch(url, init)
  },
  toMcp: (fetch) => async (url, init) => {
    await lease.whenHeld(init?.signal ?? undefined)
    return await fetch(url, init)
  },
  toHosts: (connector) => ({
    async connect(host, port, signal) {
      await lease.whenHeld(signal)
      return await connector.connect(host, port, signal)
    },
  }),
})
