/** The part of a conversation that its workdir's files are reached by: what is seen, what is changed, and the end of both. */
import { join } from 'node:path'
import { Problem } from '../../contract/problem.ts'
import type { EventLog } from '../../events/event-log.ts'
import { Queue } from '../../lib/queue.ts'
import type { FileRules } from '../../files/file-gate.ts'
import type { DiskQuota } from '../../limits/disk-quota.ts'
import type { Jail } from '../../files/path-jail.ts'
import { openJail } from '../../files/path-jail.ts'
import { createUnfinishedFiles } from '../../files/unfinished-files.ts'
import type { FileChanges } from './file-changes.ts'
import { createFileChanges } from './file-changes.ts'
import type { FileViews } from './file-views.ts'
import { createFileViews } from './file-views.ts'

export type FilesDeps = {
  readonly log: EventLog
  /** The one that holds now. */
  readonly workdir: () => string
  readonly rules: () => FileRules
  /** The server's own, of this conversation. */
  readonly directory: string
  /** For all conversations together, so that a file system that hangs leaves threads for the logs. */
  readonly io: Queue
  readonly ripgrep: () => string | undefined
  /** Undefined without a limit. */
  readonly quota: DiskQuota | undefined
  readonly redact: (text: string) => string
}

export type ConversationFiles = Omit<FileViews & FileChanges, 'settled'> & {
  /** What is under way ends with `why`; no change is made any more when it resolves. */
  readonly close: (why: Problem) => Promise<void>
}

/** Waits for files of one conversation at a time: none takes all the threads that there are for all. */
const SHARE = 4

export function createConversationFiles(deps: FilesDeps): ConversationFiles {
  const { log, io, ripgrep, quota, redact } = deps
  const closing = new AbortController()
  const unfinished = createUnfinishedFiles(join(deps.directory, 'uploads'))
  let swept: Promise<void> | undefined
  const share = new Queue({ limit: SHARE })

  const open = (signal: AbortSignal): Promise<Jail> =>
    openJail({
      workdir: deps.workdir(),
      rules: deps.rules(),
      io: (work, both) => share.run(() => io.run(work, { signal: both }), { signal: both }),
      signal: AbortSignal.any([signal, closing.signal]),
    })

  const sweepOnce = (jail: Jail): Promise<void> =>
    (swept ??= unfinished.sweep(jail).catch((error: unknown) => {
      swept = undefined
      throw error
    }))

  async function inJail<T>(signal: AbortSignal, work: (jail: Jail) => Promise<T>): Promise<T> {
    try {
      await using jail = await open(signal)
      await sweepOnce(jail)
      return await work(jail)
    } catch (error) {
      if (closing.signal.aborted) throw closing.signal.reason
      throw signal.aborted && !(error instanceof Problem) ? goneAway(error) : error
    }
  }

  const { settled, ...changes } = createFileChanges({ log, inJail, closing: closing.signal, unfinished, quota, redact })
  return {
    ...createFileViews({ openJail: open, inJail, ripgrep, redact }),
    ...changes,
    async close(why) {
      closing.abort(why)
      await settled()
    },
  }
}

const goneAway = (cause: unknown) =>
  new Problem('invalid_request', 'The request ended before all of it had come; nothing was changed.', { cause })
