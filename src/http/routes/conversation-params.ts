/** What the routes of one conversation have in common: the id in the path, and the errors. */
import { z } from 'zod'
import { ConversationId } from '../../contract/conversation.ts'

export const ById = z.strictObject({ id: ConversationId })

/** What every route of one conversation may answer. */
export const CONVERSATION = [
  'conversation_not_found',
  'conversation_deleted',
  'conversation_damaged',
  'storage_failed',
] as const
