/** Decides which API a model is asked through: the configured one, or that of the vendor whose own host it is. */
import type { LLM_PROVIDERS, LlmConfig } from '../contract/llm-config.ts'
import { isOpenAiReasoningModel } from './models.ts'

export type ProviderName = (typeof LLM_PROVIDERS)[number]

export const OPENAI_URL = 'https://api.openai.com/v1'
export const ANTHROPIC_URL = 'https://api.anthropic.com/v1'

/**
 * Any other host may be a gateway, and nearly all of them implement Chat Completions. OpenAI's reasoning models work
 * without their earlier reasoning there: only the Responses API accepts it.
 */
export function providerOf({ provider }: LlmConfig, baseUrl: string, model: string): ProviderName {
  if (provider) return provider
  const { hostname } = new URL(baseUrl)
  if (hostname === new URL(ANTHROPIC_URL).hostname) return 'anthropic'
  const isOpenAi = hostname === new URL(OPENAI_URL).hostname
  return isOpenAi && isOpenAiReasoningModel(model) ? 'openai_responses' : 'openai'
}

/** Returns the URL of the vendor of a model whose name has no prefix; undefined for the name of an unknown provider. */
export function vendorUrlOf({ provider, model = '' }: LlmConfig): string | undefined {
  if (model.includes('/')) return undefined
  return provider === 'anthropic' || (!provider && /^claude-/i.test(model)) ? ANTHROPIC_URL : OPENAI_URL
}
