/**
 * The URL, model name and headers of a configuration's requests.
 *
 * Model names may have a provider prefix, as in LiteLLM: `openai/gpt-4o`, `ollama/llama3`. It says how to reach the
 * model
 * and is not part of the name, so it is removed. But some hosts serve models of many vendors under names that look the
 * same (`openai/gpt-4o` on OpenRouter, `openai/gpt-oss-120b` on Groq): there the vendor is kept, and only the host's
 * own
 * prefix is removed. A first part that is not a known provider (`Qwen/Qwen3-32B`) belongs to the name.
 */
import type { LlmConfig } from '../contract/llm-config.ts'
import { faultOfHeaderName, faultOfHeaderValue } from '../contract/http-header.ts'
import { LlmError } from './llm.ts'
import type { ProviderName } from './provider-name.ts'
import { ANTHROPIC_URL, OPENAI_URL, providerOf, vendorUrlOf } from './provider-name.ts'

export type Endpoint = {
  readonly provider: ProviderName
  readonly baseUrl: string
  /** The model name that the endpoint expects. */
  readonly model: string
  readonly query: Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, string>>
}

type Named = LlmConfig & { readonly model: string }

/** LiteLLM's name of a provider -> its endpoint; '' if only the user can know it. */
export const KNOWN_PREFIXES: Readonly<Record<string, string>> = {
  openai: OPENAI_URL,
  azure: '',
  hosted_vllm: '',
  litellm_proxy: '',
  lm_studio: 'http://127.0.0.1:1234/v1',
  ollama: 'http://127.0.0.1:11434/v1',
  ollama_chat: 'http://127.0.0.1:11434/v1',
  anthropic: ANTHROPIC_URL,
  deepseek: 'https://api.deepseek.com',
  gemini: 'https://generativelanguage.googleapis.com/v1beta/openai',
  groq: 'https://api.groq.com/openai/v1',
  mistral: 'https://api.mistral.ai/v1',
  openrouter: 'https://openrouter.ai/api/v1',
  together_ai: 'https://api.together.xyz/v1',
  xai: 'https://api.x.ai/v1',
}

/** Hosts whose model names begin with a vendor -> their own provider prefix. */
const HOSTS_WITH_VENDOR_NAMES: Readonly<Record<string, string>> = {
  'openrouter.ai': 'openrouter',
  'ai-gateway.vercel.sh': 'vercel_ai_gateway',
  'api.groq.com': 'groq',
  'api.together.xyz': 'together_ai',
  'api.deepinfra.com': 'deepinfra',
  'router.huggingface.co': 'huggingface',
  'integrate.api.nvidia.com': 'nvidia_nim',
  'models.github.ai': 'github',
}

/** Throws an `LlmError` of type `config` if the configuration is incomplete. */
export function endpointOf(settings: LlmConfig): Endpoint {
  if (!settings.model) throw new LlmError('config', 'No model is configured: set llm_config.model.')
  const config = { ...settings, model: settings.model }
  const prefix = prefixOf(config)
  const baseUrl = baseUrlOf(config, prefix)
  const model = withoutPrefix(config, new URL(baseUrl).hostname)
  const provider = providerOf(config, baseUrl, model)
  return {
    provider,
    baseUrl: completePath(baseUrl, prefix, model),
    model,
    query: config.api_version === undefined || provider === 'anthropic' ? {} : { 'api-version': config.api_version },
    headers: headersOf(config, provider, prefix),
  }
}

function prefixOf(config: Named): string | undefined {
  const [first, rest] = splitOnce(config.model)
  return config.custom_llm_provider ?? (rest !== undefined && first in KNOWN_PREFIXES ? first : undefined)
}

function baseUrlOf(config: Named, prefix: string | undefined): string {
  if (config.base_url !== undefined) return config.base_url
  // Without this check, another provider's key would be sent to OpenAI.
  const known = prefix !== undefined ? KNOWN_PREFIXES[prefix] : vendorUrlOf(config)
  if (known) return known
  throw new LlmError('config', `Nothing says where the model "${config.model}" is served: set llm_config.base_url.`)
}

function withoutPrefix(config: Named, host: string): string {
  const [prefix, name] = splitOnce(config.model)
  if (name === undefined) return config.model
  if (prefix === config.custom_llm_provider) return name
  const own = HOSTS_WITH_VENDOR_NAMES[host]
  if (own !== undefined) return prefix === own ? name : config.model
  // The open weights are published as `openai/gpt-oss-…`, and servers like vLLM use exactly that name.
  if (config.model.startsWith('openai/gpt-oss-')) return config.model
  return prefix in KNOWN_PREFIXES ? name : config.model
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
    // With compression, some proxies delay a stream until a block is full.
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
