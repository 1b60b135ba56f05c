/**
 * Which origin the model credentials of a conversation are for, and what becomes of them when its configuration leads to
 * another one: they are dropped, never sent there.
 */
import type { DroppedCredential, LlmConfig } from '../../contract/llm-config.ts'
import { DROPPED_CREDENTIALS, MASK } from '../../contract/llm-config.ts'
import { endpointOf } from '../../llm/endpoint.ts'

/** What an update comes to, given the configuration that it changes. */
export type LlmChange = {
  /** Without headers that are to stay as they are, where nothing stays. */
  readonly update: LlmConfig
  /** Of the configuration with the update. */
  readonly origin: string
  /** Whether stored credentials stay. */
  readonly keepsCredentials: boolean
  /** Stored credentials that are gone, at least in part, and that the update has no new value for. */
  readonly dropped: readonly DroppedCredential[]
}

/** Scheme, host and port; empty when the configuration leads nowhere, so that nothing is sent. */
export function originOf(config: LlmConfig): string {
  try {
    // The name of the model alone can lead elsewhere, as `openrouter/…` does without a base_url.
    return new URL(endpointOf(config).baseUrl).origin
  } catch {
    return ''
  }
}

/** `stored` may be masked: only where it leads counts, and which credentials it has. */
export function changeOf(stored: LlmConfig, update: LlmConfig): LlmChange {
  const origin = originOf({ ...stored, ...update })
  if (origin === originOf(stored)) return { update, origin, keepsCredentials: true, dropped: [] }
  const { extra_headers: sent, ...rest } = update
  const headers = Object.entries(sent ?? {}).filter(([, value]) => value !== MASK)
  const isPartial = headers.length < Object.keys(sent ?? {}).length
  const fresh = { ...rest, ...(headers.length > 0 && { extra_headers: Object.fromEntries(headers) }) }
  const isDropped = (name: DroppedCredential) =>
    stored[name] !== undefined && (fresh[name] === undefined || (name === 'extra_headers' && isPartial))
  return { update: fresh, origin, keepsCredentials: false, dropped: DROPPED_CREDENTIALS.filter(isDropped) }
}

/** The credentials as they are kept, with the origin they are for. */
export const boundTo = (origin: string, secrets: Readonly<Record<string, string>>): Record<string, string> => ({
  ...secrets,
  origin,
})

/** Whether kept credentials may be sent there. Those of earlier versions do not say what they are for. */
export const isFor = (origin: string, secrets: Readonly<Record<string, string>>): boolean =>
  (secrets['origin'] ?? origin) === origin
