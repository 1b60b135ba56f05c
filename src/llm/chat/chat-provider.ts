/** The Chat Completions API, which most endpoints implement. */
import { createOpenAiPost } from '../connection/openai-client.ts'
import type { Provider } from '../provider.ts'
import { readChunk } from './chat-chunk.ts'
import type { ChatDialect } from './chat-dialect.ts'
import { dialectsAfterRefusal, firstDialect } from './chat-dialect.ts'
import { createRequestWriter } from './chat-request.ts'

export const CHAT_COMPLETIONS: Provider<ChatDialect> = {
  title: 'Chat Completions',
  connect: (endpoint, fetch) => createOpenAiPost(endpoint, '/chat/completions', fetch),
  createWriter: (config, { model }) => createRequestWriter(config, model),
  firstDialect,
  dialectsAfterRefusal,
  createReader: () => (json) => [readChunk(json)],
}
