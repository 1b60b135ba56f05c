/** How a configured reasoning effort is requested from a Claude model. */
import type { LlmConfig } from '../../contract/values/llm-config.ts'
import type { LlmRequest, ModelMessage } from '../llm.ts'
import { isOwnThinking } from './assistant-blocks.ts'
import { indexAfter } from '../request/refused-reasoning.ts'
import type { MessagesDialect } from './messages-dialect.ts'

type Effort = NonNullable<LlmConfig['reasoning_effort']>

/** Tokens of thinking for each effort. The API requires at least 1024, and fewer than the output limit. */
const BUDGETS: Readonly<Record<Exclude<Effort, 'none'>, number>> = {
  minimal: 1024,
  low: 4096,
  medium: 12_000,
  high: 24_000,
  xhigh: 31_000,
  max: 63_000,
}

const MIN_BUDGET = 1024

export function thinkingOf(
  { reasoning_effort: effort }: LlmConfig,
  { thinking, refusedReasoning }: MessagesDialect,
  { messages, maxTokens }: Pick<LlmRequest, 'messages'> & { readonly maxTokens: number },
): { readonly thinking?: object; readonly effort?: string } {
  if (effort === undefined || thinking === 'none') return {}
  if (effort === 'none') return { thinking: { type: 'disabled' } }
  if (thinking === 'adaptive') {
    const level = effort === 'minimal' ? 'low' : effort
    return { thinking: { type: 'adaptive', display: 'summarized' }, effort: level }
  }
  const budget_tokens = Math.min(BUDGETS[effort], maxTokens - MIN_BUDGET)
  if (budget_tokens < MIN_BUDGET || lacksThinking(messages, indexAfter(messages, refusedReasoning))) return {}
  return { thinking: { type: 'enabled', budget_tokens } }
}

/**
 * Returns true if the turn that the request continues began without thinking. With a budget, the API refuses such a
 * turn: it was another model's, or its thinking could not be kept.
 */
function lacksThinking(messages: readonly ModelMessage[], reasoningFrom: number): boolean {
  const askedAt = messages.findLastIndex((message) => message.role === 'user' && !message.repeatsImages)
  const first = messages.findIndex((message, at) => at > askedAt && message.role === 'assistant')
  const answer = messages[first]
  if (answer?.role !== 'assistant') return false
  const part = answer.parts?.[0]
  return first < reasoningFrom || part === undefined || !isOwnThinking(part)
}
