/** The providers by name. Which one a configuration means, `endpointOf` decides. */
import type { LlmConfig } from '../contract/values/llm-config.ts'
import { ANTHROPIC_MESSAGES } from './anthropic/messages-provider.ts'
import { CHAT_COMPLETIONS } from './chat/chat-provider.ts'
import type { Endpoint } from './endpoints/endpoint.ts'
import type { Dialects, Adapter } from './provider.ts'
import { createAdapter } from './provider.ts'
import { OPENAI_RESPONSES } from './responses/responses-provider.ts'

export function adapterOf(config: LlmConfig, endpoint: Endpoint, dialects: Dialects): Adapter {
  switch (endpoint.provider) {
    case 'anthropic':
      return createAdapter(ANTHROPIC_MESSAGES, config, endpoint, dialects)
    case 'openai_responses':
      return createAdapter(OPENAI_RESPONSES, config, endpoint, dialects)
    case 'openai':
      return createAdapter(CHAT_COMPLETIONS, config, endpoint, dialects)
  }
}
