/**
 * The table that maps a provider's refusal to one of the contract's error types.
 *
 * Providers agree on the status at best; the rest is derived from the codes and messages of OpenAI, Azure, OpenRouter,
 * Anthropic, Gemini, xAI, Copilot, Kimi, Z.ai, Qwen, Together, Ollama, vLLM and LiteLLM. The first rule that matches
 * applies.
 *
 * The patterns are matched against text of a foreign server: no pattern has an unlimited repetition.
 */
import type { ErrorType } from '../contract/events/status.ts'

export type ProviderRefusal = {
  /** 0 if the failure occurred inside an answer. */
  readonly status: number
  readonly code: string
  readonly message: string
}

export type ErrorClass = {
  readonly type: ErrorType
  readonly retryable: boolean
  /** `{model}`, `{url}` and `{api}` are replaced by those of the endpoint. */
  readonly advice: string
}

/** A provider reports the error at the beginning; the rest is the echo of a request. */
const MAX_JUDGED_CHARS = 8192

type Rule = ErrorClass & { readonly status?: readonly number[]; readonly words?: RegExp }

const CONTEXT_WORDS =
  /context_length_exceeded|context[ _]?(length|window|size|limit)|maximum context|prompt is too long|too many (input )?tokens|input (is too long|token count)|maximum number of tokens|reduce the length|request_too_large|string_above_max_length|maximum prompt length|token count.{0,60}exceeds the limit|max_prompt_tokens_exceeded|model token limit|token limit exceeded|prompt exceeds max length|input token length too long|range of input length|`max_new_tokens` must be/i
const QUOTA_WORDS =
  /insufficient_quota|insufficient (balance|credits?|funds)|credit balance|exceeded your current quota|out of credits|quota_exceeded|billing_/i
const KEY_WORDS =
  /invalid_api_key|incorrect api key|invalid (x-)?api[- ]key|api key not valid|authentication_error|no auth credentials/i
const RATE_WORDS = /rate[_ ]?limit|too many requests|resource_exhausted|overloaded|slow_down|throttl/i
const MODEL_WORDS =
  /model_not_found|not_found_error model: |model\b.{0,200}(not found|does not exist)|no such model|unknown model|invalid model|deploymentnotfound/i
const FILTER_WORDS =
  /content_filter|content[ _]management[ _]policy|content_policy_violation|responsible_?ai_?policy|\w{1,40}_policy_violation|bio_policy|cyber_policy|invalid_prompt|data_inspection_failed/i
const REQUEST_WORDS = /invalid_request|bad request|invalid_argument/i

const CHECK_KEY = 'The provider refused the credentials: check llm_config.api_key.'
const WAIT = 'The provider limits the rate of requests: wait, or ask it for higher limits.'
const UNKNOWN_MODEL = 'The provider does not know the model'
const CHECK_MODEL = `${UNKNOWN_MODEL} "{model}": check llm_config.model and llm_config.base_url.`
const CHECK_CONFIG = 'The provider refused the request: check llm_config.'
const TOO_LONG = "The conversation no longer fits the model's context window."
const FILTERED = "The provider's content filter refused the conversation: change the message, or use another model."
const NO_CREDIT = 'The provider account has no credit left: check its plan and billing.'

const RULES: readonly Rule[] = [
  { status: [401], type: 'auth', retryable: false, advice: CHECK_KEY },
  // A 429 is checked before messages about tokens: "too many tokens" is then a rate limit, which is temporary.
  { status: [402, 403, 429], words: QUOTA_WORDS, type: 'quota', retryable: false, advice: NO_CREDIT },
  { status: [402], type: 'quota', retryable: false, advice: NO_CREDIT },
  { status: [429, 529], type: 'rate_limit', retryable: true, advice: WAIT },
  { words: CONTEXT_WORDS, type: 'context_window', retryable: false, advice: TOO_LONG },
  { status: [413], type: 'context_window', retryable: false, advice: TOO_LONG },
  { words: FILTER_WORDS, type: 'content_filter', retryable: false, advice: FILTERED },
  { words: QUOTA_WORDS, type: 'quota', retryable: false, advice: NO_CREDIT },
  { words: KEY_WORDS, type: 'auth', retryable: false, advice: CHECK_KEY },
  {
    status: [403],
    type: 'auth',
    retryable: false,
    advice: 'The provider does not allow this: check what llm_config.api_key may use.',
  },
  { words: RATE_WORDS, type: 'rate_limit', retryable: true, advice: WAIT },
  { status: [400, 404, 422], words: MODEL_WORDS, type: 'config', retryable: false, advice: CHECK_MODEL },
  {
    status: [301, 302, 303, 307, 308, 404, 405],
    type: 'config',
    retryable: false,
    advice: 'No {api} endpoint was found below {url}: check llm_config.base_url.',
  },
  { status: [408, 409], type: 'network', retryable: true, advice: 'The provider could not answer in time.' },
  { status: [0], words: REQUEST_WORDS, type: 'config', retryable: false, advice: CHECK_CONFIG },
]

export function judge(refusal: ProviderRefusal): ErrorClass {
  const judgedText = `${refusal.code} ${refusal.message}`.slice(0, MAX_JUDGED_CHARS)
  const rule = RULES.find(
    ({ status, words }) => (status?.includes(refusal.status) ?? true) && (words?.test(judgedText) ?? true),
  )
  if (rule) return rule
  if (refusal.status >= 500 || refusal.status === 0) {
    return { type: 'network', retryable: true, advice: 'The provider failed. It may work later.' }
  }
  return { type: 'config', retryable: false, advice: CHECK_CONFIG }
}

/** Returns true for the message of an error that says that the provider has no such model. */
export const isUnknownModel = (message: string | undefined): boolean => message?.startsWith(UNKNOWN_MODEL) === true

/** Returns false if the same request may be accepted at another time, or with another key: whatever words it quotes. */
export function isAboutRequest(refusal: ProviderRefusal): boolean {
  return !['rate_limit', 'quota', 'auth'].includes(judge(refusal).type)
}

/** Returns true if the refusal says that the model or its server does not support tools. */
export function refusesTools(refusal: ProviderRefusal): boolean {
  return (
    [0, 400, 404, 422, 500].includes(refusal.status) &&
    /does(n't| not) support (tools|tool|function)|support tool use|tool[ _](calling|use|calls)\W{0,20} (is|are) not supported|'?tools'? (is|are) not supported|tool choice requires/i.test(
      refusal.message.slice(0, MAX_JUDGED_CHARS),
    )
  )
}
