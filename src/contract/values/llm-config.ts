/** The model configuration of a conversation: `llm_config` in requests and responses. */
import { z } from 'zod'
import { HEADER_NAMES, faultOfHeaderName, faultOfHeaderValue, hasUserInfo } from './http-header.ts'

/** Shown in place of a secret value; sent back, it means "unchanged". */
export const MASK = '**********'

/** It is sent in a header; an invalid one would fail each request of the conversation. */
const ApiKey = z
  .string()
  .min(1)
  .check(({ value, issues }) => {
    const fault = faultOfHeaderValue(value)
    if (fault !== undefined) issues.push({ code: 'custom', input: undefined, message: fault })
  })
  .describe('Encrypted at rest and returned masked. Sending the mask back keeps the value. Visible ASCII characters.')

const MAX_EXTRA_HEADERS = 50

/** Errors are reported by position: a name may contain a value by mistake. */
const ExtraHeaders = z
  .record(z.string(), z.string())
  .check(({ value, issues }) => {
    const refuse = (message: string) => issues.push({ code: 'custom', input: undefined, path: [], message })
    const entries = Object.entries(value)
    if (entries.length > MAX_EXTRA_HEADERS) return void refuse(`at most ${MAX_EXTRA_HEADERS} are allowed`)
    entries.forEach(([name, text], at) => {
      const fault = faultOfHeaderName(name) ?? faultOfHeaderValue(text)
      if (fault !== undefined) refuse(`entry ${at + 1}: ${fault}`)
    })
  })
  .meta({ propertyNames: HEADER_NAMES, maxProperties: MAX_EXTRA_HEADERS })
  .describe('Encrypted at rest and returned masked.')

/** It is parsed, searched for secrets and sent as a whole with each request. */
const MAX_EXTRA_BODY_BYTES = 256 * 1024

const ExtraBody = z
  .record(z.string(), z.unknown())
  .describe('Added unchanged to each request to the endpoint. At most 256 KiB as JSON.')

const MAX_FALLBACKS = 5

export const LLM_PROVIDERS = ['openai', 'openai_responses', 'anthropic'] as const
const LlmProvider = z
  .enum(LLM_PROVIDERS)
  .describe(
    "The API of the endpoint: OpenAI's Chat Completions, OpenAI's Responses, or Anthropic's Messages. Default: the API of the vendor for models at api.openai.com and api.anthropic.com, and Chat Completions everywhere else.",
  )

export const ToolChoice = z.enum(['auto', 'required', 'none'])
export type ToolChoice = z.infer<typeof ToolChoice>

/** The efforts from the least to the most. */
export const REASONING_EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const
export const ReasoningEffort = z.enum(REASONING_EFFORTS)
export type ReasoningEffort = z.infer<typeof ReasoningEffort>

/** The fields this server uses; the names are those of an OpenHands LLM object's dump. Durations are seconds. */
export const LlmConfig = z
  .strictObject({
    model: z.string().min(1).max(500),
    api_key: ApiKey,
    base_url: z
      .url({ protocol: /^https?$/ })
      .max(2048)
      .describe('The endpoint of the model: the URL that the path of its API is appended to.'),
    api_version: z.string().describe('Sent as `api-version` (Azure) or `anthropic-version`.'),
    custom_llm_provider: z.string(),
    provider: LlmProvider,
    temperature: z.number().min(0).max(2).describe('Not sent if absent.'),
    top_p: z.number().min(0).max(1),
    top_k: z.number().nonnegative(),
    reasoning_effort: ReasoningEffort.describe(
      'How much the model reasons. For `xhigh` and `max`, a model that is known not to have that level is asked for the highest level below that it has.',
    ),
    max_output_tokens: z.int().positive(),
    fallback_models: z
      .array(z.string().min(1).max(500))
      .max(MAX_FALLBACKS)
      .describe(
        'Models of the same endpoint that are asked, in this order, while `model` is overloaded or its rate is limited.',
      ),
    context_window: z
      .int()
      .min(1000)
      .max(100_000_000)
      .describe('Tokens that the model can read and write at once. Default: known for common models, by their name.'),
    disable_vision: z
      .boolean()
      .describe('True if the model does not support images: the request says that they were left out.'),
    timeout: z.number().positive().max(86_400).describe('Timeout of one request in seconds. Default: 600.'),
    num_retries: z.int().min(0).max(20).describe('Retries after a retryable error. Default: 4.'),
    extra_headers: ExtraHeaders,
    extra_body: ExtraBody,
    input_cost_per_token: z.number().nonnegative().describe('USD.'),
    output_cost_per_token: z.number().nonnegative().describe('USD.'),
    cache_read_cost_per_token: z.number().nonnegative().describe('USD. Default: `input_cost_per_token`.'),
    cache_write_cost_per_token: z.number().nonnegative().describe('USD. Default: `input_cost_per_token`.'),
    tool_choice: ToolChoice,
  })
  .partial()
  .meta({ id: 'LlmConfig' })
export type LlmConfig = z.infer<typeof LlmConfig>

const OF_RUN = 'For this run, instead of that of `llm_config`.'

/** How the model answers in one run. */
export const RunSampling = z.object({
  temperature: LlmConfig.shape.temperature.describe(OF_RUN),
  max_output_tokens: LlmConfig.shape.max_output_tokens.describe(OF_RUN),
  reasoning_effort: LlmConfig.shape.reasoning_effort.describe(OF_RUN),
})
export type RunSampling = z.infer<typeof RunSampling>

// Check the size before the fields: parsing a large one takes longest.
const NewExtraBody = z
  .unknown()
  .refine((body) => Buffer.byteLength(JSON.stringify(body)) <= MAX_EXTRA_BODY_BYTES, {
    error: 'has more than 256 KiB as JSON',
  })
  .pipe(ExtraBody)

/** The configuration in a request. Stored ones stay readable. The URL is shown to all clients, and never sent with its credentials. */
export const NewLlmConfig = LlmConfig.extend({
  base_url: LlmConfig.shape.base_url
    .unwrap()
    .refine((url) => !hasUserInfo(url), {
      error: 'must not contain credentials; send them in api_key or extra_headers',
    })
    .optional(),
  extra_body: NewExtraBody.optional(),
  api_version: z.string().max(200).optional(),
  custom_llm_provider: z.string().max(200).optional(),
})

/** The secret parts of a configuration, which are dropped when it points to another origin. */
export const DROPPED_CREDENTIALS = ['api_key', 'extra_headers'] as const
/** What is known of one model at one endpoint, and not of others. */
export const FIELDS_OF_MODEL = [
  'context_window',
  'input_cost_per_token',
  'output_cost_per_token',
  'cache_read_cost_per_token',
  'cache_write_cost_per_token',
] as const

export const DroppedField = z.enum([...DROPPED_CREDENTIALS, ...FIELDS_OF_MODEL])
export type DroppedField = z.infer<typeof DroppedField>

/** Fields of an OpenHands LLM dump that this server knows and does not use: listed in `warnings`, not refused. */
const UNUSED_FIELDS = new Set([
  'aws_access_key_id',
  'aws_region_name',
  'aws_secret_access_key',
  'aws_session_token',
  'caching_prompt',
  'custom_tokenizer',
  'disable_stop_word',
  'drop_params',
  'enable_encrypted_reasoning',
  'extended_thinking_budget',
  'force_string_serializer',
  'litellm_extra_body',
  'log_completions',
  'log_completions_folder',
  'max_input_tokens',
  'max_message_chars',
  'metadata',
  'model_canonical_name',
  'modify_params',
  'native_tool_calling',
  'ollama_base_url',
  'openrouter_app_name',
  'openrouter_site_url',
  'prompt_cache_retention',
  'reasoning_summary',
  'retry_max_wait',
  'retry_min_wait',
  'retry_multiplier',
  'safety_settings',
  'seed',
  'service_id',
  'stream',
  'usage_id',
])

/** `llm_config` of a request: an unmodified dump. A null is an unset field. */
export const LlmConfigInput = z.record(z.string(), z.unknown()).meta({
  id: 'LlmConfigInput',
  description: 'The fields of LlmConfig, or an unchanged dump of an OpenHands LLM object.',
})

/**
 * Splits a dump into used fields and the names of unused ones; unknown fields stay in `used`, where `LlmConfig` refuses
 * them.
 */
export function splitDump(dump: Record<string, unknown>): { used: Record<string, unknown>; unused: string[] } {
  const set = Object.entries(dump).filter(([, value]) => value !== null)
  return {
    used: Object.fromEntries(set.filter(([name]) => !UNUSED_FIELDS.has(name))),
    unused: set.filter(([name]) => UNUSED_FIELDS.has(name)).map(([name]) => name),
  }
}

/** Returns the configuration with masked secrets, for responses and logs. */
export function maskLlmConfig(config: LlmConfig): LlmConfig {
  return {
    ...config,
    ...(config.api_key !== undefined && { api_key: MASK }),
    ...(config.extra_headers && { extra_headers: maskValues(config.extra_headers) }),
  }
}

const maskValues = (record: Record<string, string>) =>
  Object.fromEntries(Object.keys(record).map((name) => [name, MASK]))
