/** How the tools for the web reach it. */
import type { SafeFetch } from '../../security/safe-fetch.ts'

export type WebAccess = {
  /** Reaches public addresses only. */
  readonly fetch: Pick<SafeFetch, 'get'>
  /**
   * Returns why the network policy of the conversation does not permit a request, as a clause; undefined when it does.
   * Must be asked before each request, also for the target of a redirect. It may wait for a user.
   */
  readonly refusal: (url: URL, signal: AbortSignal) => Promise<string | undefined>
}

/** Why a request to the web has failed, in words for the model. */
export class WebFault extends Error {
  override readonly name = 'WebFault'
  readonly isDenied: boolean

  constructor(message: string, { isDenied = false, cause }: { isDenied?: boolean; cause?: unknown } = {}) {
    super(message, { cause })
    this.isDenied = isDenied
  }
}

/** Throws a `WebFault` for what the policy does not permit. */
export async function requirePermitted({ refusal }: WebAccess, url: URL, signal: AbortSignal): Promise<void> {
  const why = await refusal(url, signal)
  if (why !== undefined)
    throw new WebFault(`The network policy of this conversation refused ${url.host}: ${why}`, { isDenied: true })
}
