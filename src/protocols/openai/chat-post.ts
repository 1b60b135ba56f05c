/** A request of the Chat Completions API, with what its headers say. */
import type { Access } from '../../access/access.ts'
import type { ClientTool } from '../../contract/client-tools/client-tool.ts'
import type { HashBody } from '../../security/body-hash.ts'
import type { RetryHeaders } from './earlier-post.ts'
import type { ChatMessages, ChatRequest } from './chat-request.ts'

export type ChatPost = RetryHeaders & {
  readonly body: ChatRequest
  readonly messages: ChatMessages
  /** The functions of the client. */
  readonly tools: readonly ClientTool[]
  /** Undefined: the answer may have any form. */
  readonly outputSchema: Record<string, unknown> | undefined
  /** Undefined: the conversation ends with its answer. */
  readonly thread: string | undefined
  readonly access: Access
  readonly hashBody: HashBody
}
