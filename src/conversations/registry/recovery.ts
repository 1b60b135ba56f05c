/** Brings conversations back whose log has failed, or that a stop of the server cut off: tried again until the disk allows it. */
import type { ProblemCode } from '../../contract/problem.ts'
import { Problem } from '../../contract/problem.ts'
import { Retrier } from '../retrier.ts'
import type { Logger } from '../../telemetry/logger.ts'
import type { Storage } from '../../storage/storage.ts'
import type { RecoveryReason } from '../state/run-end.ts'
import type { Conversation } from '../conversation.ts'

export type RecoveryDeps = {
  readonly storage: Pick<Storage, 'active'>
  readonly logger: Logger
  readonly isKnown: (id: string) => boolean
  /** Opens it, and first gives up an object whose log has failed. */
  readonly open: (id: string) => Promise<Conversation>
  /** The server stops. */
  readonly signal: AbortSignal
}

/** What the disk, or a lack of descriptors, leads to. */
const TEMPORARY: ReadonlySet<ProblemCode> = new Set(['storage_full', 'storage_failed', 'unavailable'])

export class Recovery {
  readonly #deps: RecoveryDeps
  /** Those whose log failed in this process after it had begun a run there. */
  readonly #failedHere = new Set<string>()

  constructor(deps: RecoveryDeps) {
    this.#deps = deps
  }

  /** Opens one that a stop of the server left half done. Resolves after the first try. */
  async recover(id: string): Promise<void> {
    await new Retrier(() => this.#try(id, () => this.#recoverOnce(id))).now()
  }

  /** Opens the conversation again when its log fails: a run must not wait until somebody asks for it. */
  watch(conversation: Conversation): void {
    void conversation.log.whenStoreFailed.then(() => this.#openAgain(conversation))
  }

  /** Why something may be half done in a log that is opened now. */
  reasonFor(id: string): RecoveryReason {
    return this.#failedHere.has(id) ? 'log_failed' : 'server_restart'
  }

  forget(id: string): void {
    this.#failedHere.delete(id)
  }

  async #openAgain({ id, hasRun }: Conversation): Promise<void> {
    if (hasRun) this.#failedHere.add(id)
    await new Retrier(() => this.#try(id, () => this.#deps.open(id))).now()
  }

  async #recoverOnce(id: string): Promise<void> {
    const { storage, open } = this.#deps
    const conversation = await open(id)
    await conversation.settle()
    const { status, reason, settings } = conversation.state
    const wasCutOff = status === 'paused' && (reason === 'server_restart' || reason === 'server_closing')
    if (wasCutOff && settings.resume_on_start) await conversation.run()
    else if (!conversation.isWorking) await storage.active.clear(id)
  }

  /** Rejects when it has to be tried again. */
  async #try(id: string, work: () => Promise<unknown>): Promise<void> {
    const { storage, logger, isKnown, signal } = this.#deps
    if (signal.aborted) return
    try {
      if (isKnown(id)) await work()
      else await storage.active.clear(id)
    } catch (error) {
      if (signal.aborted) return
      logger.error({ err: error, conversation_id: id }, 'this conversation could not be recovered')
      if (isTemporary(error)) throw error
    }
  }
}

function isTemporary(error: unknown): boolean {
  return error instanceof Problem ? TEMPORARY.has(error.code) : error instanceof Error && 'syscall' in error
}
