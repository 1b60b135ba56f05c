/**
 * The differences between endpoints of Anthropic's Messages API, and between Claude models: first guessed from their
 * names, then learnt from their refusals.
 */
import type { Endpoint } from '../endpoints/endpoint.ts'
import { NO_IMAGES } from '../request/images.ts'
import type { LlmRequest } from '../llm.ts'
import { latestReasoning } from '../request/refused-reasoning.ts'
import { vendorAt } from '../endpoints/vendors.ts'

export type MessagesDialect = {
  /**
   * How the end of the prompt is marked for the cache: by a field of the request, which leaves the messages unchanged,
   * or by a field of the last block. The tools and the system prompt are marked with both.
   */
  readonly cache: 'automatic' | 'marked' | 'none'
  /** How a reasoning effort is written. */
  readonly thinking: 'adaptive' | 'budget' | 'none'
  /** If true, the schema of the output is sent as its format. Only a part of JSON Schema is accepted. */
  readonly schema: boolean
  /** If false, a sentence replaces each image. */
  readonly images: boolean
  /** The output limit if none is configured: the API requires one. */
  readonly maxTokens: number
  /** The latest reasoning that was refused: it is left out, and all before it. */
  readonly refusedReasoning?: string | undefined
}

/** Enough for a long file in one tool call; every model since Claude 4 supports it. */
const MAX_TOKENS = 32_000

/** Models before Claude 4.6 have a budget of tokens for their thinking. */
const WITH_BUDGET = /claude-(3|(opus|sonnet|haiku)-4(-[0-5])?(-\d{6,}|$|@|:))/

export function firstDialect({ baseUrl, model }: Endpoint): MessagesDialect {
  const isVendor = vendorAt(baseUrl)?.id === 'anthropic'
  return {
    cache: isVendor ? 'automatic' : 'marked',
    schema: isVendor,
    thinking: WITH_BUDGET.test(model) ? 'budget' : 'adaptive',
    images: true,
    maxTokens: MAX_TOKENS,
  }
}

export function dialectsAfterRefusal(
  dialect: MessagesDialect,
  complaint: string,
  { messages }: LlmRequest,
): readonly MessagesDialect[] {
  const others: MessagesDialect[] = []
  const limit = OUTPUT_LIMIT.exec(complaint)
  if (limit) others.push({ ...dialect, maxTokens: Number(limit[1]) })
  // Signed reasoning stays in the history: unless it were left out, every later request would fail. The signatures of
  // another endpoint are refused, for example.
  if (BAD_REASONING.test(complaint)) others.push({ ...dialect, refusedReasoning: latestReasoning(messages) })
  if (complaint.includes('cache_control')) {
    if (dialect.cache === 'automatic') others.push({ ...dialect, cache: 'marked' })
    others.push({ ...dialect, cache: 'none' })
  }
  if (dialect.schema && /schema|output_config\.format/i.test(complaint)) others.push({ ...dialect, schema: false })
  if (THINKING_FIELDS.test(complaint)) {
    const other = dialect.thinking === 'adaptive' ? 'budget' : 'adaptive'
    if (dialect.thinking !== 'none') others.push({ ...dialect, thinking: other }, { ...dialect, thinking: 'none' })
  }
  if (dialect.images && NO_IMAGES.test(complaint)) others.push({ ...dialect, images: false })
  return others
}

const OUTPUT_LIMIT = /max_tokens: \d{1,12} > (\d{1,9})\b/

const BAD_REASONING = /\bsignature\b|thinking.{0,80}cannot be modified/i

const THINKING_FIELDS = /thinking|adaptive|budget_tokens|output_config|\beffort\b/i
