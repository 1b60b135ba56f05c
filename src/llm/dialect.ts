/** In what OpenAI-compatible endpoints differ: guessed from their names at first, then learnt from what they refuse. */
import type { Endpoint } from './endpoint.ts'
import { hasAlternatingRoles, isOpenAiReasoningModel } from './models.ts'

export type Dialect = {
  readonly maxTokensField: 'max_tokens' | 'max_completion_tokens'
  readonly streamOptions: boolean
  /** Without, a sentence stands in the place of each image. */
  readonly images: boolean
  /** A user's message may only follow an answer: where it does not, a short answer goes before it. */
  readonly alternates: boolean
}

/**
 * OpenAI deprecated `max_tokens` and its reasoning models refuse it, wherever they are hosted; most other servers know
 * nothing else, and some ignore the new name without a word, which would lift the limit.
 */
export function firstDialect({ baseUrl, model }: Endpoint): Dialect {
  const isOpenAi = new URL(baseUrl).hostname === 'api.openai.com'
  return {
    maxTokensField: isOpenAi || isOpenAiReasoningModel(model) ? 'max_completion_tokens' : 'max_tokens',
    streamOptions: true,
    images: true,
    alternates: hasAlternatingRoles(model),
  }
}

/** The dialects to try next when an endpoint refused this one, by what it complained about; the likeliest first. */
export function dialectsAfterRefusal(dialect: Dialect, complaint: string): Dialect[] {
  const { streamOptions, images, alternates, maxTokensField } = dialect
  const others: Dialect[] = []
  if (streamOptions && complaint.includes('stream_options')) others.push({ ...dialect, streamOptions: false })
  if (!alternates && WANTS_ALTERNATION.test(complaint)) others.push({ ...dialect, alternates: true })
  // An image stays in the history: were it not left out, no later request of the conversation would be taken.
  if (images && NO_IMAGES.test(complaint)) others.push({ ...dialect, images: false })
  if (complaint.includes(maxTokensField) && UNKNOWN_FIELD.test(complaint)) {
    const other = maxTokensField === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens'
    others.push({ ...dialect, maxTokensField: other })
  }
  return others
}

const UNKNOWN_FIELD = /unsupported|not supported|unrecognized|unknown|not permitted|unexpected|extra/i

/** Mistral's API and the chat templates of its models, and of Gemma, whoever serves them. */
const WANTS_ALTERNATION = /unexpected role 'user' after role|roles must alternate/i

/**
 * How endpoints say that they, or their model, take no images, or not this one. The last two are what those say that
 * know nothing of content parts.
 */
const NO_IMAGES = /image|\bvision\b|multi-?modal|content must be a string|content.{0,40}invalid type: sequence/i
