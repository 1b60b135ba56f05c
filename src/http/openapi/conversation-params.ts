/** What the routes of one conversation share: the id in the path, and the errors. */
import { z } from 'zod'
import { ConversationId } from '../../contract/conversation.ts'

export const ById = z.strictObject({ id: ConversationId })

/** Errors of every route of one conversation. */
export const CONVERSATION = [
  'conversation_not_found',
  'conversation_deleted',
  'conversation_damaged',
  'storage_failed',
] as const
