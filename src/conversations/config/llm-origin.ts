/**
 * The origin that the model credentials of a conversation belong to. When a new configuration points to another origin,
 * the credentials are dropped and never sent there. What is known of one model is dropped with it.
 */
import type { DroppedField, LlmConfig } from '../../contract/llm-config.ts'
import { DROPPED_CREDENTIALS, FIELDS_OF_MODEL, MASK } from '../../contract/llm-config.ts'
import { endpointOf } from '../../llm/endpoint.ts'

/** The effect of an update on the configuration that it changes. */
export type LlmChange = {
  /** The update, without masked headers if no stored credentials are kept. */
  readonly update: LlmConfig
  /** The origin of the updated configuration. */
  readonly origin: string
  /** True if stored credentials are kept. */
  readonly keepsCredentials: boolean
  /** Stored fields that are dropped, at least in part, and that the update does not replace. */
  readonly dropped: readonly DroppedField[]
}

/** Returns scheme, host and port; empty if the configuration has no endpoint, so that nothing is sent. */
export function originOf(config: LlmConfig): string {
  try {
    // The model name alone can select an endpoint, as `openrouter/…` does without a base_url.
    return new URL(endpointOf(config).baseUrl).origin
  } catch {
    return ''
  }
}

/** `stored` may be masked: only its origin and the names of its credentials matter. */
export function changeOf(stored: LlmConfig, update: LlmConfig): LlmChange {
  const origin = originOf({ ...stored, ...update })
  const isOther = origin !== originOf(stored) || (update.model ?? stored.model) !== stored.model
  // With the prices of the earlier model, a budget would count something else.
  const ofModel = FIELDS_OF_MODEL.filter((name) => isOther && stored[name] !== undefined && update[name] === undefined)
  if (origin === originOf(stored)) return { update, origin, keepsCredentials: true, dropped: ofModel }
  const { extra_headers: sent, ...rest } = update
  const headers = Object.entries(sent ?? {}).filter(([, value]) => value !== MASK)
  const isPartial = headers.length < Object.keys(sent ?? {}).length
  const fresh = { ...rest, ...(headers.length > 0 && { extra_headers: Object.fromEntries(headers) }) }
  const isDropped = (name: (typeof DROPPED_CREDENTIALS)[number]) =>
    stored[name] !== undefined && (fresh[name] === undefined || (name === 'extra_headers' && isPartial))
  return {
    update: fresh,
    origin,
    keepsCredentials: false,
    dropped: [...DROPPED_CREDENTIALS.filter(isDropped), ...ofModel],
  }
}

/** The stored configuration after the change. */
export function updated(stored: LlmConfig, { update, dropped }: Pick<LlmChange, 'update' | 'dropped'>): LlmConfig {
  const names = new Set<string>(dropped)
  return { ...Object.fromEntries(Object.entries(stored).filter(([name]) => !names.has(name))), ...update }
}

/** Returns the credentials as they are stored, together with their origin. */
export const boundTo = (origin: string, secrets: Readonly<Record<string, string>>): Record<string, string> => ({
  ...secrets,
  origin,
})

/** True if stored credentials may be sent to this origin. Credentials of earlier versions record no origin. */
export const isFor = (origin: string, secrets: Readonly<Record<string, string>>): boolean =>
  (secrets['origin'] ?? origin) === origin
