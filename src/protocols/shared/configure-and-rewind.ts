import type { UpdateConfig } from '../../contract/conversation.ts'
import type { RewindRequest } from '../../contract/rewind.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import type { RewindOptions } from '../../conversations/rewind.ts'

type ConfigureAndRewind = {
  readonly update: UpdateConfig | undefined
  /** Undefined: nothing is taken back. */
  readonly toSeq: number | undefined
  /** The last event that the request knows of. */
  readonly head: number
  readonly rewind: (request: RewindRequest, options: Pick<RewindOptions, 'dryRun'>) => Promise<void>
}

/** Changes the configuration only if the conversation can go back. The change itself is nothing that happened meanwhile. */
export async function configureAndRewind(
  conversation: Conversation,
  { update, toSeq: to_seq, head, rewind }: ConfigureAndRewind,
): Promise<void> {
  if (to_seq !== undefined && update) await rewind({ to_seq, last_seq: head }, { dryRun: true })
  if (update) await conversation.configure(update)
  if (to_seq !== undefined) await rewind({ to_seq, last_seq: update ? conversation.log.head : head }, {})
}
