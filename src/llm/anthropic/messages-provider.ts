/** Anthropic's Messages API. */
import type { Provider } from '../provider.ts'
import { createAnthropicPost } from './anthropic-client.ts'
import { createMessagesReader } from './messages-chunks.ts'
import type { MessagesDialect } from './messages-dialect.ts'
import { dialectsAfterRefusal, firstDialect } from './messages-dialect.ts'
import { createRequestWriter } from './messages-request.ts'

export const ANTHROPIC_MESSAGES: Provider<MessagesDialect> = {
  title: 'Messages',
  connect: createAnthropicPost,
  createWriter: createRequestWriter,
  firstDialect,
  dialectsAfterRefusal,
  createReader: createMessagesReader,
}
