/** A request of the Chat Completions API, with what its headers say. */
import type { Access } from '../../access/access.ts'
import type { HashBody } from '../../security/body-hash.ts'
import type { ChatMessages, ChatRequest } from './chat-request.ts'

export type ChatAsk = {
  readonly body: ChatRequest
  readonly messages: ChatMessages
  /** Undefined: the conversation ends with its answer. */
  readonly thread: string | undefined
  readonly access: Access
  readonly hashBody: HashBody
  /** The header `Idempotency-Key`, and the hashes of the body. */
  readonly key: string | undefined
  /** The client says that it has sent the request before. */
  readonly isRepeated: boolean
}
