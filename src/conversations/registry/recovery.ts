/** Reopens conversations whose log has failed or that a server stop interrupted: retries until the disk allows it. */
import type { ProblemCode } from '../../contract/problem.ts'
import { Problem } from '../../contract/problem.ts'
import { Retrier } from '../../storage/retrier.ts'
import type { Logger } from '../../telemetry/logger.ts'
import type { Storage } from '../../storage/storage.ts'
import { isLostWorkReason } from '../../state/cut-off.ts'
import { deadlinesOf } from '../../state/open-requests.ts'
import type { RecoveryReason } from '../../state/run-end.ts'
import type { State } from '../../state/state.ts'
import type { Conversation } from '../conversation.ts'
import type { Deadlines } from './deadlines.ts'
import { overridesOfLast } from '../runs/requested-run.ts'

export type RecoveryDeps = {
  readonly storage: Pick<Storage, 'active' | 'availability' | 'instances' | 'shared'>
  readonly deadlines: Pick<Deadlines, 'postpone' | 'setLeft'>
  readonly logger: Logger
  readonly isKnown: (id: string) => Promise<boolean>
  /** Opens the conversation, after disposing an object whose log has failed. */
  readonly open: (id: string) => Promise<Conversation>
  /** Ends the object of a conversation that another writer has. */
  readonly drop: (conversation: Conversation) => Promise<void>
  /** Aborted when the server stops. */
  readonly signal: AbortSignal
}

/** Problems caused by a full disk or missing file descriptors. */
const TEMPORARY: ReadonlySet<ProblemCode> = new Set([
  'storage_full',
  'storage_failed',
  'unavailable',
  'storage_unavailable',
])

export class Recovery {
  readonly #deps: RecoveryDeps
  /** Conversations whose log failed in this process after it had begun a run there. */
  readonly #failedHere = new Set<string>()
  /** Conversations that this process has closed at rest, with calls that have not begun or subagents that wait. */
  readonly #atRest = new Set<string>()
  readonly #recovering = new Map<string, Promise<Conversation>>()

  constructor(deps: RecoveryDeps) {
    this.#deps = deps
  }

  /** Opens a conversation that a server stop interrupted. Resolves after the first attempt. */
  async recover(id: string): Promise<void> {
    await new Retrier(() => this.#try(id, () => this.recoverOnce(id))).now()
  }

  /**
   * Reopens the conversation when its log fails: a run must not wait until a client requests it. If another writer has taken
   * it over, nothing of it works here any more.
   */
  watch(conversation: Conversation): void {
    const { drop, logger } = this.#deps
    void conversation.log.whenFailed.then((why) => {
      if (why === 'taken_over') return drop(conversation)
      if (why === 'lost')
        logger.error(
          { conversation_id: conversation.id },
          'the database has lost events of this conversation, which is opened again',
        )
      return this.#openAgain(conversation)
    })
  }

  /** Closes the requests of the conversation whose deadline has passed. Never rejects; retries until the disk allows it. */
  async expire(id: string): Promise<void> {
    await new Retrier(() => this.#try(id, () => this.#expireOnce(id))).now()
  }

  async #expireOnce(id: string): Promise<void> {
    const { storage, deadlines, open } = this.#deps
    // It does the same. If it dies before, this one does it.
    if (storage.shared && (await storage.instances?.otherOwnerOf(id))) return deadlines.postpone(id)
    const conversation = await open(id)
    await conversation.requests.expire()
    deadlines.setLeft(id, deadlinesOf(conversation.state))
  }

  /** It is closed, and none of its calls has begun: the log cannot show that. */
  rest({ id, openCalls, subagents }: State): void {
    if (openCalls.length > 0 || subagents.length > 0) this.#atRest.add(id)
  }

  /** Another process has closed it so. */
  wasReleased(id: string): void {
    this.#atRest.add(id)
  }

  /**
   * Returns why work may be unfinished in a log that is opened now; undefined if none is. Recovers the conversation of an
   * instance that has ended once it is open: the look for such conversations does not find it any more.
   */
  noticeOpening(id: string): RecoveryReason | undefined {
    const why = this.#reasonFor(id)
    if (why === 'owner_lost') void this.recover(id)
    return why
  }

  #reasonFor(id: string): RecoveryReason | undefined {
    if (this.#atRest.has(id)) return undefined
    if (this.#failedHere.has(id)) return 'log_failed'
    // One of several instances has ended without releasing it.
    return this.#deps.storage.availability.lease ? 'owner_lost' : 'server_restart'
  }

  /** It is open: what begins from now on may be left unfinished. */
  opened(id: string): void {
    this.#atRest.delete(id)
  }

  forget(id: string): void {
    this.#failedHere.delete(id)
    this.#atRest.delete(id)
  }

  async #openAgain({ id, hasRun }: Conversation): Promise<void> {
    if (hasRun) this.#failedHere.add(id)
    await new Retrier(() => this.#try(id, () => this.#deps.open(id))).now()
  }

  /**
   * Opens the conversation without a retry, and continues its run if that was cut off. Rejects if it cannot be opened. Calls at the
   * same time do it once.
   */
  recoverOnce(id: string): Promise<Conversation> {
    const current = this.#recovering.get(id) ?? this.#recoverNow(id).finally(() => this.#recovering.delete(id))
    this.#recovering.set(id, current)
    return current
  }

  async #recoverNow(id: string): Promise<Conversation> {
    const { storage, open } = this.#deps
    const conversation = await open(id)
    await conversation.settle()
    const { state, redact } = conversation
    const { status, reason, settings } = state
    const wasCutOff = status === 'paused' && (isLostWorkReason(reason) || reason === 'server_closing')
    if (wasCutOff && settings.resume_on_start) await conversation.run(overridesOfLast(state, redact))
    else if (!conversation.isWorking) await storage.active.clear(id)
    return conversation
  }

  /** Rejects if it must be retried. */
  async #try(id: string, work: () => Promise<unknown>): Promise<void> {
    const { storage, logger, isKnown, signal } = this.#deps
    if (signal.aborted) return
    try {
      if (await isKnown(id)) await work()
      else await storage.active.clear(id)
    } catch (error) {
      if (signal.aborted) return
      // The storage reports an outage once, and what another instance has is its own business until that one ends.
      const isExpected = error instanceof Problem && error.code === 'storage_unavailable'
      const level = isExpected ? 'debug' : 'error'
      logger[level]({ err: error, conversation_id: id }, 'this conversation could not be recovered')
      if (isTemporary(error)) throw error
    }
  }
}

function isTemporary(error: unknown): boolean {
  return error instanceof Problem ? TEMPORARY.has(error.code) : error instanceof Error && 'syscall' in error
}
