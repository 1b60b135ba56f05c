/** Counts the tokens of a run, by provider and model, subagents included. */
import type { EventOf } from '../../contract/events/event.ts'
import type { Usage } from '../../contract/values/message.ts'
import { NO_USAGE, addUsage } from '../../contract/values/message.ts'

type ModelUsage = { readonly model: string; readonly provider: string | undefined; readonly usage: Usage }

export class TokenUsage {
  readonly #counts = new Map<string, ModelUsage>()

  add({ model, provider, usage }: EventOf<'AssistantMessage'>): void {
    const key = `${provider ?? ''} ${model}`
    const before = this.#counts.get(key)?.usage ?? NO_USAGE
    this.#counts.set(key, { model, provider, usage: addUsage(before, usage) })
  }

  /** Returns the list of `RUN_FINISHED`. */
  list(): object[] {
    return [...this.#counts.values()].map(({ model, provider, usage }) => ({
      model,
      ...(provider !== undefined && { provider }),
      inputTokens: usage.input_tokens,
      outputTokens: usage.output_tokens,
      totalTokens: usage.input_tokens + usage.output_tokens,
      cachedInputTokens: usage.cached_tokens,
      reasoningTokens: usage.reasoning_tokens,
    }))
  }
}
