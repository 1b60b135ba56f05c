/** OpenAI's Responses API, used without its storage: each request has the whole conversation. */
import { createOpenAiPost } from '../connection/openai-client.ts'
import type { Provider } from '../provider.ts'
import { createResponsesReader } from './responses-chunks.ts'
import type { ResponsesDialect } from './responses-dialect.ts'
import { dialectsAfterRefusal, firstDialect } from './responses-dialect.ts'
import { createRequestWriter } from './responses-request.ts'

export const OPENAI_RESPONSES: Provider<ResponsesDialect> = {
  title: 'Responses',
  connect: (endpoint, fetch) => createOpenAiPost(endpoint, '/responses', fetch),
  createWriter: createRequestWriter,
  firstDialect,
  dialectsAfterRefusal,
  createReader: createResponsesReader,
}
