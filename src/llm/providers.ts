/** The providers by name. Which one a configuration means, `endpointOf` decides. */
import type { LlmConfig } from '../contract/llm-config.ts'
import { ANTHROPIC_MESSAGES } from './anthropic/messages-provider.ts'
import { CHAT_COMPLETIONS } from './chat/chat-provider.ts'
import type { Endpoint } from './endpoint.ts'
import type { Dialects, Speaker } from './provider.ts'
import { createSpeaker } from './provider.ts'
import { OPENAI_RESPONSES } from './responses/responses-provider.ts'

export function speakerOf(config: LlmConfig, endpoint: Endpoint, dialects: Dialects): Speaker {
  switch (endpoint.provider) {
    case 'anthropic':
      return createSpeaker(ANTHROPIC_MESSAGES, config, endpoint, dialects)
    case 'openai_responses':
      return createSpeaker(OPENAI_RESPONSES, config, endpoint, dialects)
    case 'openai':
      return createSpeaker(CHAT_COMPLETIONS, config, endpoint, dialects)
  }
}
