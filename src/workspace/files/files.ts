/** The files of one conversation's workdir, as clients view and change them, and the end of both. */
import { Problem } from '../../contract/problem.ts'
import type { EventLog } from '../../events/event-log.ts'
import { Queue } from '../../lib/queue.ts'
import type { FileRules } from '../../files/jail/file-gate.ts'
import type { DiskQuota } from '../../limits/disk-quota.ts'
import type { Jail } from '../../files/jail/path-jail.ts'
import { leftOut, openJail } from '../../files/jail/path-jail.ts'
import type { UnfinishedFiles } from '../../files/jail/unfinished-files.ts'
import type { WorkspaceSnapshots } from '../snapshots/snapshots.ts'
import type { GitAccess } from '../git/run-git.ts'
import { GitViews } from '../git/git-views.ts'
import type { FileChangesDeps, InJail } from './file-changes.ts'
import { FileChanges } from './file-changes.ts'
import type { FileViews } from './file-views.ts'
import { createFileViews } from './file-views.ts'

export type FilesDeps = {
  readonly log: EventLog
  /** Returns the current workdir. */
  readonly workdir: () => string
  readonly rules: () => FileRules
  /** One queue for all conversations, so that a hanging file system leaves threads for the logs. */
  readonly io: Queue
  readonly ripgrep: () => string | undefined
  readonly git: GitAccess
  /** The server's own directory for the conversation. */
  readonly stateDirectory: string
  readonly unfinished: UnfinishedFiles
  /** Undefined if there is no limit. */
  readonly quota: DiskQuota | undefined
  readonly redact: (text: string) => string
  /** Called after each change of a file, with its path from the workdir. Must not throw. */
  readonly onFileChanged: FileChangesDeps['onFileChanged']
  readonly createSnapshots: (headCommit: () => Promise<string | undefined>) => WorkspaceSnapshots
}

/** Concurrent file operations per conversation, so that one conversation cannot use all shared threads. */
const SHARE = 4

export class ConversationFiles {
  readonly views: FileViews
  readonly changes: FileChanges
  #snapshots: WorkspaceSnapshots | undefined
  readonly #deps: FilesDeps
  #git: GitViews | undefined
  readonly #closing = new AbortController()
  readonly #share = new Queue({ limit: SHARE })

  constructor(deps: FilesDeps) {
    this.#deps = deps
    const openJail = (signal: AbortSignal) => this.#openJail(signal)
    const inJail: InJail = (signal, work) => this.#inJail(signal, work)
    const { log, ripgrep, unfinished, quota, redact, onFileChanged } = deps
    this.views = createFileViews({ openJail, inJail, ripgrep, redact })
    const closing = this.#closing.signal
    this.changes = new FileChanges({ log, inJail, closing, unfinished, quota, redact, onFileChanged })
  }

  /** Made on first use. */
  get snapshots(): WorkspaceSnapshots {
    return (this.#snapshots ??= this.#deps.createSnapshots(() => this.#headCommit()))
  }

  /** Undefined also if the repository cannot be read. */
  async #headCommit(): Promise<string | undefined> {
    const { readHeadCommit } = await import('../git/read-head.ts')
    try {
      return await this.#inJail(this.#closing.signal, readHeadCommit)
    } catch (error) {
      // An agent can write anything there: that must not cost the snapshots of its files.
      if (this.#closing.signal.aborted) throw error
      return leftOut(error)
    }
  }

  /** The user's own repository in the workdir, if it has one. */
  get git(): GitViews {
    const { git, stateDirectory, redact } = this.#deps
    return (this.#git ??= new GitViews({
      git,
      stateDirectory,
      redact,
      inJail: (signal, work) => this.#inJail(signal, work),
    }))
  }

  /** Ends operations in progress with `why`; no change is in progress when it resolves. */
  async close(why: Problem): Promise<void> {
    this.#closing.abort(why)
    await this.changes.settled()
    await this.#snapshots?.close()
  }

  #openJail(signal: AbortSignal): Promise<Jail> {
    const { workdir, rules, io } = this.#deps
    return openJail({
      workdir: workdir(),
      rules: rules(),
      io: (work, both) => this.#share.run(() => io.run(work, { signal: both }), { signal: both }),
      signal: AbortSignal.any([signal, this.#closing.signal]),
    })
  }

  async #inJail<T>(signal: AbortSignal, work: (jail: Jail) => Promise<T>): Promise<T> {
    try {
      await using jail = await this.#openJail(signal)
      return await work(jail)
    } catch (error) {
      if (this.#closing.signal.aborted) throw this.#closing.signal.reason
      throw signal.aborted && !(error instanceof Problem) ? goneAway(error) : error
    }
  }
}

const goneAway = (cause: unknown) =>
  new Problem('invalid_request', 'The request ended before its body was complete; nothing was changed.', { cause })
