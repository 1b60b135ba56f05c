/** Restores the files of a session as they were when a message was sent. */
import type { ConversationHandle } from '../../client/conversation/conversation-handle.ts'
import { AgentServerError } from '../../client/request/agent-server-error.ts'

export type RewindFilesOptions = {
  /** Changes nothing, and returns what would change. Default: false. */
  readonly dryRun?: boolean
  /** True to restore, too, files that somebody else has changed since the last snapshot. Default: false. */
  readonly force?: boolean
}

/** `error` says why the files stay as they are. */
export type RewindFilesResult =
  | {
      readonly canRewind: true
      readonly filesChanged: readonly string[]
      /** Lines that are added, and removed. */
      readonly insertions: number
      readonly deletions: number
    }
  | { readonly canRewind: false; readonly error: string }

const REFUSALS: ReadonlySet<string> = new Set(['files_changed', 'workdir_in_use', 'snapshot_not_found'])

/** `messageId` is the id of a `UserMessage` event. The conversation stays as it is; an active run is paused. */
export async function rewindFiles(
  conversation: ConversationHandle,
  messageId: string,
  { dryRun = false, force = false }: RewindFilesOptions,
): Promise<RewindFilesResult> {
  const { seq } = await conversation.getEvent(messageId)
  const { last_seq } = await conversation.get()
  const body = { to_seq: seq, last_seq, files: true, conversation: false, ...(force && { force }) }
  try {
    const { files } = await conversation.rewind(body, dryRun ? { dry_run: true } : {})
    const { changed = [], removed = [], insertions = 0, deletions = 0 } = files ?? {}
    return { canRewind: true, filesChanged: [...changed, ...removed], insertions, deletions }
  } catch (error) {
    if (error instanceof AgentServerError && REFUSALS.has(error.code)) return { canRewind: false, error: error.message }
    throw error
  }
}
