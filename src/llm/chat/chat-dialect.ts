/**
 * The differences between OpenAI-compatible endpoints: first guessed from their names, then learnt from their refusals.
 */
import type { Endpoint } from '../endpoints/endpoint.ts'
import { NO_IMAGES } from '../request/images.ts'
import { hasAlternatingRoles, isOpenAiReasoningModel } from '../endpoints/models.ts'

export type ChatDialect = {
  readonly maxTokensField: 'max_tokens' | 'max_completion_tokens'
  readonly streamOptions: boolean
  /** If false, a sentence replaces each image. */
  readonly images: boolean
  /** If true, a user's message may only follow an answer: otherwise a short answer is inserted before it. */
  readonly alternates: boolean
  /** If true, the schema of the output is sent as `response_format`. With tools, many servers then make no calls. */
  readonly schema: boolean
  /**
   * The ids of calls that are sent; others are replaced by a hash. `long` are all, `forty` those of OpenAI, `nine`
   * those of Mistral.
   */
  readonly callIds: 'long' | 'forty' | 'nine'
  /**
   * What came with a call, `extra_content`, and with the reasoning, `reasoning_details`, is sent back or left out. `marked`: calls without any are marked as those of
   * another model, because Gemini refuses calls without its signature.
   */
  readonly callExtras: 'returned' | 'none' | 'marked'
}

/**
 * OpenAI deprecated `max_tokens` and its reasoning models refuse it, wherever they are hosted; most other servers
 * support nothing else, and some silently ignore the new name, which would lift the limit.
 */
export function firstDialect({ baseUrl, model }: Endpoint): ChatDialect {
  const isOpenAi = new URL(baseUrl).hostname === 'api.openai.com'
  return {
    maxTokensField: isOpenAi || isOpenAiReasoningModel(model) ? 'max_completion_tokens' : 'max_tokens',
    streamOptions: true,
    images: true,
    alternates: hasAlternatingRoles(model),
    schema: isOpenAi,
    callIds: hasAlternatingRoles(model) ? 'nine' : isOpenAi ? 'forty' : 'long',
    callExtras: isOpenAi ? 'none' : 'returned',
  }
}

/** Returns the dialects to try next when an endpoint refused this one, by its error message; the most likely first. */
export function dialectsAfterRefusal(dialect: ChatDialect, complaint: string): ChatDialect[] {
  const { streamOptions, images, alternates, maxTokensField } = dialect
  const others: ChatDialect[] = []
  if (streamOptions && complaint.includes('stream_options')) others.push({ ...dialect, streamOptions: false })
  if (!alternates && WANTS_ALTERNATION.test(complaint)) others.push({ ...dialect, alternates: true })
  // An image stays in the history: unless it were left out, every later request of the conversation would fail.
  if (images && NO_IMAGES.test(complaint)) others.push({ ...dialect, images: false })
  if (complaint.includes(maxTokensField) && UNKNOWN_FIELD.test(complaint)) {
    const other = maxTokensField === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens'
    others.push({ ...dialect, maxTokensField: other })
  }
  if (WANTS_OTHER_IDS.test(complaint)) {
    if (dialect.callIds === 'long') others.push({ ...dialect, callIds: 'forty' })
    others.push({ ...dialect, callIds: 'nine' })
  }
  if (/thought_?signature/i.test(complaint)) others.push({ ...dialect, callExtras: 'marked' })
  if (/extra_content|reasoning_details/.test(complaint)) others.push({ ...dialect, callExtras: 'none' })
  if (dialect.schema && SCHEMA_FIELDS.test(complaint)) others.push({ ...dialect, schema: false })
  return others
}

/** The servers of Mistral's models want nine letters and digits, OpenAI at most 40 characters. */
const WANTS_OTHER_IDS = /tool.?call.{0,40}\bid\b|tool_calls\[\d{1,4}\]\.id|tool_call_id/i

const SCHEMA_FIELDS = /response_format|json_schema|schema/i

const UNKNOWN_FIELD = /unsupported|not supported|unrecognized|unknown|not permitted|unexpected|extra/i

/** Mistral's API and the chat templates of its models, and of Gemma, on any server. */
const WANTS_ALTERNATION = /unexpected role 'user' after role|roles must alternate/i
