/** The hooks of a conversation, with its subagents, that are called in the background. */
import type { FileChangeKind } from '../../contract/files.ts'
import { PendingCalls } from './pending-calls.ts'

export class BackgroundHooks {
  /** The key is the path. */
  readonly files: PendingCalls<FileChangeKind>
  /** The calls are apart from those of files, of which there may be many. */
  readonly others: PendingCalls<undefined>

  constructor(onFault: (error: unknown) => void) {
    this.files = new PendingCalls({ merge: mergeChanges, onFault })
    this.others = new PendingCalls({ merge: () => undefined, onFault })
  }

  get isIdle(): boolean {
    return this.files.isIdle && this.others.isIdle
  }

  close(): void {
    this.files.close()
    this.others.close()
  }
}

/** Merges a change into one that no hook has received. */
function mergeChanges(before: FileChangeKind, now: FileChangeKind): FileChangeKind {
  if (before === 'add' && now === 'change') return 'add'
  return before === 'unlink' && now === 'add' ? 'change' : now
}
