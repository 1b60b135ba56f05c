/** Decides which API a model is asked through: the configured one, or that of the vendor whose own host it is. */
import type { LlmConfig } from '../contract/llm-config.ts'
import { isOpenAiReasoningModel } from './models.ts'
import type { ProviderName } from './vendors.ts'
import { vendorAt } from './vendors.ts'

/**
 * Any other host may be a gateway, and nearly all of them implement Chat Completions. OpenAI's reasoning models work
 * without their earlier reasoning there: only the Responses API accepts it.
 */
export function providerOf({ provider }: LlmConfig, baseUrl: string, model: string): ProviderName {
  if (provider) return provider
  const vendor = vendorAt(baseUrl)
  if (vendor?.id === 'openai' && isOpenAiReasoningModel(model)) return 'openai_responses'
  return vendor?.provider ?? 'openai'
}
