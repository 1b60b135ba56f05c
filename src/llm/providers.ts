/** The providers by name. Which one a configuration means, `endpointOf` decides. */
import type { LlmConfig } from '../contract/values/llm-config.ts'
import { createAnthropicPost } from './anthropic/anthropic-client.ts'
import { createMessagesReader } from './anthropic/messages-chunks.ts'
import type { MessagesDialect } from './anthropic/messages-dialect.ts'
import * as messagesDialect from './anthropic/messages-dialect.ts'
import * as messagesRequest from './anthropic/messages-request.ts'
import { readChunk } from './chat/chat-chunk.ts'
import type { ChatDialect } from './chat/chat-dialect.ts'
import * as chatDialect from './chat/chat-dialect.ts'
import * as chatRequest from './chat/chat-request.ts'
import { createOpenAiPost } from './connection/openai-client.ts'
import type { Endpoint } from './endpoints/endpoint.ts'
import type { Dialects, Adapter, Provider } from './provider.ts'
import { createAdapter } from './provider.ts'
import { createResponsesReader } from './responses/responses-chunks.ts'
import type { ResponsesDialect } from './responses/responses-dialect.ts'
import * as responsesDialect from './responses/responses-dialect.ts'
import * as responsesRequest from './responses/responses-request.ts'

/** Anthropic's Messages API. */
export const ANTHROPIC_MESSAGES: Provider<MessagesDialect> = {
  title: 'Messages',
  connect: createAnthropicPost,
  createWriter: messagesRequest.createRequestWriter,
  firstDialect: messagesDialect.firstDialect,
  dialectsAfterRefusal: messagesDialect.dialectsAfterRefusal,
  createReader: createMessagesReader,
}

/** The Chat Completions API, which most endpoints implement. */
export const CHAT_COMPLETIONS: Provider<ChatDialect> = {
  title: 'Chat Completions',
  connect: (endpoint, fetch) => createOpenAiPost(endpoint, '/chat/completions', fetch),
  createWriter: (config, { model }) => chatRequest.createRequestWriter(config, model),
  firstDialect: chatDialect.firstDialect,
  dialectsAfterRefusal: chatDialect.dialectsAfterRefusal,
  createReader: () => (json) => [readChunk(json)],
}

/** OpenAI's Responses API, used without its storage: each request has the whole conversation. */
export const OPENAI_RESPONSES: Provider<ResponsesDialect> = {
  title: 'Responses',
  connect: (endpoint, fetch) => createOpenAiPost(endpoint, '/responses', fetch),
  createWriter: responsesRequest.createRequestWriter,
  firstDialect: responsesDialect.firstDialect,
  dialectsAfterRefusal: responsesDialect.dialectsAfterRefusal,
  createReader: createResponsesReader,
}

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
