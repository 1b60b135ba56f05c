/**
 * The origin that the model credentials of a conversation belong to, and those of the server. When a new configuration
 * points to another origin, the credentials are dropped and never sent there. What is known of one model is dropped with it.
 */
import type { DroppedField, LlmConfig } from '../../contract/values/llm-config.ts'
import { DROPPED_CREDENTIALS, FIELDS_OF_MODEL, MASK } from '../../contract/values/llm-config.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import { endpointOf } from '../../llm/endpoints/endpoint.ts'
import type { KeyCommand } from '../../llm/key-command.ts'
import { LlmError } from '../../llm/errors/llm-error.ts'
import type { VendorKeys } from '../../llm/endpoints/vendor-keys.ts'
import { hasKeyHeader } from '../../llm/endpoints/vendor-keys.ts'
import { vendorAt } from '../../llm/endpoints/vendors.ts'

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
export function changeOf(storedLlm: LlmConfig, update: LlmConfig): LlmChange {
  const origin = originOf({ ...storedLlm, ...update })
  const isOther = origin !== originOf(storedLlm) || (update.model ?? storedLlm.model) !== storedLlm.model
  // A budget would count something else with the prices of the earlier model.
  const ofModel = FIELDS_OF_MODEL.filter(
    (name) => isOther && storedLlm[name] !== undefined && update[name] === undefined,
  )
  if (origin === originOf(storedLlm)) return { update, origin, keepsCredentials: true, dropped: ofModel }
  const { extra_headers: sentHeaders, ...rest } = update
  const headers = Object.entries(sentHeaders ?? {}).filter(([, value]) => value !== MASK)
  const isPartial = headers.length < Object.keys(sentHeaders ?? {}).length
  const fresh = { ...rest, ...(headers.length > 0 && { extra_headers: Object.fromEntries(headers) }) }
  const isDropped = (name: (typeof DROPPED_CREDENTIALS)[number]) =>
    storedLlm[name] !== undefined && (fresh[name] === undefined || (name === 'extra_headers' && isPartial))
  return {
    update: fresh,
    origin,
    keepsCredentials: false,
    dropped: [...DROPPED_CREDENTIALS.filter(isDropped), ...ofModel],
  }
}

/** The stored configuration after the change. */
export function updateLlm(storedLlm: LlmConfig, { update, dropped }: Pick<LlmChange, 'update' | 'dropped'>): LlmConfig {
  const names = new Set<string>(dropped)
  return { ...Object.fromEntries(Object.entries(storedLlm).filter(([name]) => !names.has(name))), ...update }
}

/** Returns the credentials as they are stored, together with their origin. */
export const boundTo = (origin: string, secrets: Readonly<Record<string, string>>): Record<string, string> => ({
  ...secrets,
  origin,
})

/** True if stored credentials may be sent to this origin. Credentials of earlier versions record no origin. */
export const isFor = (origin: string, secrets: Readonly<Record<string, string>>): boolean =>
  (secrets['origin'] ?? origin) === origin

/** The model of conversations without one, and the keys of the server. */
export type LlmDefaults = Pick<LlmConfig, 'model' | 'api_key' | 'base_url' | 'provider'> & {
  /** `api_key` is that of the vendor of `model`, and for this model alone. */
  readonly isVendorKey?: boolean
  /** Prints the key for the endpoint of these defaults. */
  readonly keyCommand?: KeyCommand | undefined
  /** The keys of a person, for the conversations of this person. A server for others has none. */
  readonly vendorKeys?: VendorKeys | undefined
}

export type ServerKey = { readonly key: string } | { readonly command: KeyCommand }

/** Returns true if the server asks this model at its own endpoint, with its own key if it has one. */
export const isOfServer = (config: LlmConfig, defaults: LlmDefaults): boolean =>
  isDefaultEndpoint(config, defaults) && (!defaults.isVendorKey || isOwnModel(config, defaults))

/** `config` has no key yet. Returns undefined if it gets none. */
export function serverKeyFor(config: LlmConfig, defaults: LlmDefaults): ServerKey | undefined {
  const { api_key: key, keyCommand: command, vendorKeys } = defaults
  // The key goes only to the server's own endpoint: a client must not be able to redirect it.
  if (isDefaultEndpoint(config, defaults)) {
    if (key !== undefined && isOfServer(config, defaults)) return { key }
    if (command) return { command }
  }
  const own = vendorKeys?.for(config)
  return own && { key: own.key }
}

/** Throws an `LlmError` that names what to set, for the endpoint of a vendor: all of them need a key. */
export function requireKey(config: LlmConfig, { vendorKeys }: LlmDefaults): void {
  const { baseUrl, model } = endpointOf(config)
  const vendor = vendorAt(baseUrl)
  if (!vendor || hasKeyHeader(config)) return
  const [variable] = vendor.keyVariables
  const orVariable = vendorKeys && variable !== undefined ? `, or set ${variable}` : ''
  throw new LlmError('auth', `${vendor.label} needs a key for ${model}: set llm_config.api_key${orVariable}.`)
}

/** An extra body may name another model, and everything else that costs: it is sent unchanged. */
const isOwnModel = ({ model, fallback_models = [], extra_body = {} }: LlmConfig, defaults: LlmDefaults): boolean =>
  model === defaults.model && fallback_models.length === 0 && Object.keys(extra_body).length === 0

function isDefaultEndpoint(config: LlmConfig, defaults: LlmDefaults): boolean {
  try {
    // The model name alone can select an endpoint: `openrouter/…` without a base_url goes to OpenRouter.
    const { model = 'openai/any', base_url, provider } = defaults
    const own = endpointOf(withoutUndefined({ model, base_url, provider }))
    return endpointOf(config).baseUrl === own.baseUrl
  } catch (error) {
    if (error instanceof LlmError) return false // there is no endpoint; the request reports it
    throw error
  }
}
