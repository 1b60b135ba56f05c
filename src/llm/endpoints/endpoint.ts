/**
 * The URL, model name and headers of a configuration's requests.
 *
 * Model names may have a provider prefix, as in LiteLLM: `openai/gpt-4o`, `ollama/llama3`. It says how to reach the
 * model and is not part of the name, so it is removed. But some hosts serve models of many vendors under names that look
 * the same (`openai/gpt-4o` on OpenRouter, `openai/gpt-oss-120b` on Groq): there the vendor is kept, and only the host's
 * own prefix is removed. A first part that is not a known provider (`Qwen/Qwen3-32B`) belongs to the name.
 */
import type { LlmConfig } from '../../contract/values/llm-config.ts'
import { faultOfHeaderName, faultOfHeaderValue } from '../../contract/values/http-header.ts'
import { LlmError } from '../errors/llm-error.ts'
import { isOpenAiReasoningModel } from './models.ts'
import type { ProviderName, Vendor } from './vendors.ts'
import { vendorAt, vendorOfName, vendorOfPrefix } from './vendors.ts'

export type Endpoint = {
  readonly provider: ProviderName
  readonly baseUrl: string
  /** The model name that the endpoint expects. */
  readonly model: string
  readonly query: Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, string>>
}

type NamedModel = LlmConfig & { readonly model: string }

const ANTHROPIC = vendorOfPrefix('anthropic')
const OPENAI = vendorOfPrefix('openai')

/** Throws an `LlmError` of type `config` if the configuration is incomplete. */
export function endpointOf(settings: LlmConfig): Endpoint {
  if (!settings.model) throw new LlmError('config', 'No model is configured: set llm_config.model.')
  const config = { ...settings, model: settings.model }
  const prefix = prefixOf(config)
  const baseUrl = baseUrlOf(config, prefix)
  const model = withoutPrefix(config, baseUrl)
  const provider = providerOf(config, baseUrl, model)
  return {
    provider,
    baseUrl: completePath(baseUrl, prefix, model),
    model,
    query: config.api_version === undefined || provider === 'anthropic' ? {} : { 'api-version': config.api_version },
    headers: headersOf(config, provider, prefix),
  }
}

function prefixOf(config: NamedModel): string | undefined {
  const [first, rest] = splitOnce(config.model)
  return config.custom_llm_provider ?? (rest !== undefined && vendorOfPrefix(first) ? first : undefined)
}

function baseUrlOf(config: NamedModel, prefix: string | undefined): string {
  if (config.base_url !== undefined) return config.base_url
  const vendor = prefix === undefined ? vendorOf(config) : vendorOfPrefix(prefix)
  if (vendor?.baseUrl !== undefined) return vendor.baseUrl
  throw new LlmError('config', `${whyUnknown(config, prefix)}.`)
}

/**
 * The vendor of a model whose name has no prefix. A name that nobody is known for says nothing: the key of one vendor must not
 * go to another, so `provider` has to name the API of its maker.
 */
function vendorOf({ model, provider }: NamedModel): Vendor | undefined {
  if (model.includes('/')) return undefined
  const knownVendor = vendorOfName(model)
  if (provider === 'anthropic')
    return knownVendor === undefined || knownVendor.provider === provider ? ANTHROPIC : undefined
  return knownVendor ?? (provider && OPENAI)
}

const whyUnknown = ({ model }: NamedModel, prefix: string | undefined): string =>
  prefix === undefined
    ? `Nothing says where the model "${model}" is served: set llm_config.base_url or llm_config.provider, or write the vendor in front of its name, as in openrouter/${model}`
    : `Nothing says where the model "${model}" is served: set llm_config.base_url`

function withoutPrefix(config: NamedModel, baseUrl: string): string {
  const [prefix, name] = splitOnce(config.model)
  if (name === undefined) return config.model
  if (prefix === config.custom_llm_provider) return name
  const host = vendorAt(baseUrl)
  if (host?.servesOthers) return prefix === host.id ? name : config.model
  // The open weights are published as `openai/gpt-oss-…`, and servers like vLLM use exactly that name.
  if (config.model.startsWith('openai/gpt-oss-')) return config.model
  return vendorOfPrefix(prefix) ? name : config.model
}

/**
 * Any other host may be a gateway, and nearly all of them implement Chat Completions. OpenAI's reasoning models work
 * without their earlier reasoning there: only the Responses API accepts it.
 */
function providerOf({ provider }: LlmConfig, baseUrl: string, model: string): ProviderName {
  if (provider) return provider
  const vendor = vendorAt(baseUrl)
  if (vendor?.id === 'openai' && isOpenAiReasoningModel(model)) return 'openai_responses'
  return vendor?.provider ?? 'openai'
}

/** LiteLLM's users configure the root URL of Azure and Ollama; the OpenAI-compatible API is below it. */
function completePath(baseUrl: string, prefix: string | undefined, model: string): string {
  const url = new URL(baseUrl)
  if (url.pathname !== '/') return baseUrl
  if (prefix === 'azure') url.pathname = `/openai/deployments/${encodeURIComponent(model)}`
  if (prefix === 'ollama' || prefix === 'ollama_chat') url.pathname = '/v1'
  return url.href
}

function headersOf(config: LlmConfig, provider: ProviderName, prefix: string | undefined): Record<string, string> {
  const auth = authOf(config, provider, prefix)
  const extra = Object.entries(config.extra_headers ?? {}).map(([name, value]) => [name.toLowerCase(), value] as const)
  // The configuration was checked when it was received; one of an earlier version, or of the environment, was not.
  const fault = [...Object.entries(auth), ...extra].find(([name, value]) => !isHeader(name, value))
  if (fault) throw new LlmError('config', UNSENDABLE)
  return {
    accept: 'text/event-stream, application/json',
    // Some proxies delay a compressed stream until a block is full.
    'accept-encoding': 'identity',
    'content-type': 'application/json',
    'user-agent': 'agent-server',
    ...auth,
    ...Object.fromEntries(extra),
  }
}

/** Local servers need no key; some refuse an invented one, and all accept a missing header. */
function authOf(
  { api_key: key, api_version }: LlmConfig,
  provider: ProviderName,
  prefix: string | undefined,
): Record<string, string> {
  if (provider === 'anthropic')
    return { 'anthropic-version': api_version ?? ANTHROPIC_VERSION, ...(key && { 'x-api-key': key }) }
  if (!key) return {}
  return prefix === 'azure' ? { 'api-key': key } : { authorization: `Bearer ${key}` }
}

/** The only version since 2023, and required. */
const ANTHROPIC_VERSION = '2023-06-01'

/** Shows neither the name nor the value: either may be the key. */
const UNSENDABLE =
  'A header of the request cannot be sent: check the characters in llm_config.api_key and llm_config.extra_headers.'

const isHeader = (name: string, value: string) =>
  faultOfHeaderName(name) === undefined && faultOfHeaderValue(value) === undefined

function splitOnce(model: string): [first: string, rest: string | undefined] {
  const slash = model.indexOf('/')
  return slash < 0 ? [model, undefined] : [model.slice(0, slash), model.slice(slash + 1)]
}
