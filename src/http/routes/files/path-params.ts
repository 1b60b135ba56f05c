/** What the routes of a path in the workdir share: the path in the URL, and the errors. */
import { z } from 'zod'
import { ConversationId } from '../../../contract/conversation.ts'
import { CONVERSATION } from '../../openapi/conversation-params.ts'

export const ByPath = z.strictObject({
  id: ConversationId,
  '*': z.string().describe('A path in the workdir, percent-encoded once. Its slashes may be encoded too.'),
})

/** Errors of every route of a path. */
export const PATH = [...CONVERSATION, 'unsafe_path', 'workdir_missing', 'not_a_directory', 'file_forbidden'] as const

/** Errors of every route that changes a file. */
export const CHANGE = [...PATH, 'disk_quota_exceeded', 'storage_full'] as const
