/** Makes the forks of one replay, some at a time, follows them, and fills the table. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Replay, ReplayPlan, ReplayRow } from '../contract/replay.ts'
import { ForkConversation } from '../contract/conversation.ts'
import { Problem } from '../contract/problem.ts'
import { modeNamed } from '../contract/values/permission.ts'
import type { ConversationManager } from '../conversations/manager.ts'
import { mapBounded } from '../lib/map-bounded.ts'
import type { Logger } from '../telemetry/logger.ts'
import { CostBudget, MAX_REPLAYING, spentOn } from './cost-budget.ts'
import { checkFork, endFork, followFork, measureFork } from './follow-fork.ts'
import type { ReplayRecord, ReplayRecords } from './replay-record.ts'
import { isOver } from './replay-record.ts'

export type ReplayRunDeps = {
  readonly manager: ConversationManager
  readonly records: Pick<ReplayRecords, 'write'>
  readonly logger: Logger
}

/** How long a replay waits before it stores its end again, in milliseconds. */
const STORE_AGAIN_MS = 1000

/** The reason of an aborted signal: why the replay does not continue. */
type EndReason = 'cancelled' | 'closing'

export class ReplayRun {
  readonly #deps: ReplayRunDeps
  readonly #ending = new AbortController()
  readonly #budget: CostBudget
  #record: ReplayRecord
  #isClosed = false
  #written: Promise<void> = Promise.resolve()
  /** Resolves when nothing of it works any more. Never rejects. */
  readonly ended: Promise<void>

  /** Begins at once. */
  constructor(deps: ReplayRunDeps, record: ReplayRecord) {
    this.#deps = deps
    this.#record = record
    this.#budget = new CostBudget(record.replay.max_cost_usd)
    for (const { conversation_id: id, status } of record.replay.rows)
      if (status === 'running') this.#budget.keep(id, record.shares[id] ?? 0)
    if (record.isCancelled) this.#ending.abort('cancelled' satisfies EndReason)
    this.ended = this.#run().catch((error: unknown) => {
      deps.logger.error({ err: error, replay_id: record.replay.id }, 'a replay could not continue')
    })
  }

  get record(): ReplayRecord {
    return this.#record
  }

  /** Resolves when all forks have ended. If the server ends before, its next start cancels it. */
  async cancel(): Promise<void> {
    this.#record = { ...this.#record, isCancelled: true }
    this.#ending.abort('cancelled' satisfies EndReason)
    await Promise.all([this.#write(), this.ended])
  }

  /** The next start of the server continues. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#ending.abort('closing' satisfies EndReason)
    await this.ended
  }

  async #run(): Promise<void> {
    const { plan, replay } = this.#record
    const open = replay.rows.filter(({ status }) => status === 'pending' || status === 'running')
    // Those that an earlier server has begun come first: they hold their share of the budget.
    const sortedRows = open.toSorted(
      (one, other) => Number(other.status === 'running') - Number(one.status === 'running'),
    )
    await mapBounded(sortedRows, MAX_REPLAYING, async (row) => await this.#replay(row, plan))
    if (this.#ending.signal.reason === 'closing') return
    const status = this.#ending.signal.aborted ? 'cancelled' : 'completed'
    const keep = (plan?.keep ?? 0) * 1000
    // It is needed no more, may be large, and has keys of model endpoints.
    this.#record = { ...this.#record, plan: undefined }
    await this.#end({ status, keep_until: new Date(Date.now() + keep).toISOString() })
  }

  /** A full disk delays the end. Otherwise the replay would be stored as one that runs, and its next instance would run it again. */
  async #end(change: Partial<Replay>): Promise<void> {
    const { id } = this.#record.replay
    for (let isReported = false; !this.#isClosed; isReported = true)
      try {
        return await this.#change(change)
      } catch (error) {
        if (!isReported) this.#deps.logger.error({ err: error, replay_id: id }, 'the end of a replay is not stored yet')
        await sleep(STORE_AGAIN_MS, undefined, { ref: false })
      }
  }

  /** Never rejects. */
  async #replay(row: ReplayRow, plan: ReplayPlan | undefined): Promise<void> {
    const { signal } = this.#ending
    const id = row.conversation_id
    const release = this.#deps.manager.hold(id)
    try {
      signal.throwIfAborted()
      if (!plan) throw new Problem('storage_failed', UNREADABLE)
      await this.#begin(row, plan)
      // It was cancelled while its workdir was copied.
      signal.throwIfAborted()
      await followFork(this.#deps.manager, id, signal)
      await this.#measure(id, plan)
    } catch (error) {
      if (signal.reason === 'closing') return
      // Its row is right in memory, and stored with the next change.
      await this.#fail(id, error).catch((cause: unknown) => {
        this.#deps.logger.error({ err: cause, conversation_id: id }, 'a row of a replay could not be stored')
      })
    } finally {
      release()
      this.#budget.release(id)
    }
  }

  async #begin(row: ReplayRow, plan: ReplayPlan): Promise<void> {
    const { manager } = this.#deps
    const id = row.conversation_id
    if (await manager.find(id)) return
    const share = await this.#budget.reserve(id, () => this.#record.replay.rows)
    this.#ending.signal.throwIfAborted()
    if (share === 0) throw new Problem('limit_reached', SPENT)
    this.#record = { ...this.#record, shares: { ...this.#record.shares, [id]: share } }
    await this.#changeRow(id, { status: 'running' })
    const request = ForkConversation.parse({
      id,
      at_seq: row.at_seq,
      ...(plan.llm_configs && { llm_config: plan.llm_configs[row.llm_config] }),
    })
    const { files, llm_config, warnings } = await manager.fork(row.from_conversation_id, request, undefined, {
      permissionMode: modeNamed(plan.permission_mode ?? 'deny'),
      network: plan.network ?? { mode: 'none' },
      mcpServers: plan.mcp_servers,
      maxBudgetUsd: share,
    })
    const message = warnings?.join(' ')
    await this.#changeRow(id, {
      ...(files && { files: files.from }),
      ...(llm_config.model !== undefined && { model: llm_config.model }),
      ...(message !== undefined && { message }),
    })
  }

  async #measure(id: string, { check }: ReplayPlan): Promise<void> {
    const { signal } = this.#ending
    const conversation = await this.#deps.manager.open(id)
    const isWaiting = conversation.requests.list().length > 0
    await endFork(conversation)
    const measuredResult = await measureFork(conversation, isWaiting)
    await this.#changeRow(id, measuredResult)
    const checkedResult = check && (await checkFork(conversation, check, signal))
    signal.throwIfAborted()
    const isFailed = measuredResult.outcome === 'error'
    await this.#changeRow(id, {
      status: isFailed ? 'error' : 'completed',
      ...(checkedResult && { check: checkedResult }),
    })
  }

  /** What the fork has cost counts, however it ended. */
  async #fail(id: string, error: unknown): Promise<void> {
    const { manager } = this.#deps
    const isCancelled = this.#ending.signal.aborted
    // If a client has deleted the fork, or it cannot be read, its cost is not known, and must not be spent again.
    const { files, cost_usd = this.#record.shares[id] ?? 0 } = this.#rowOf(id)
    let measuredRow: Partial<ReplayRow> = files ? { cost_usd } : {}
    try {
      if (await manager.find(id)) {
        const conversation = await manager.open(id)
        await endFork(conversation)
        measuredRow = await measureFork(conversation, false)
      }
    } catch (cause) {
      this.#deps.logger.warn({ err: cause, conversation_id: id }, 'the fork of a replay could not be ended')
    }
    const message = isCancelled ? undefined : await this.#messageOf(error)
    await this.#changeRow(id, {
      ...measuredRow,
      status: isCancelled ? 'cancelled' : 'error',
      ...(message !== undefined && { message }),
    })
  }

  #rowOf(id: string): Partial<ReplayRow> {
    return this.#record.replay.rows.find(({ conversation_id: fork }) => fork === id) ?? {}
  }

  async #messageOf(error: unknown): Promise<string> {
    if (error instanceof Problem) return error.message
    this.#deps.logger.error({ err: error, replay_id: this.#record.replay.id }, 'a fork of a replay failed')
    return 'The server failed; its log says why.'
  }

  async #changeRow(id: string, change: Partial<ReplayRow>): Promise<void> {
    const { rows } = this.#record.replay
    await this.#change({ rows: rows.map((row) => (row.conversation_id === id ? { ...row, ...change } : row)) })
  }

  /** Durable when it resolves. */
  async #change(change: Partial<Replay>): Promise<void> {
    const rows = change.rows ?? this.#record.replay.rows
    const progress = { done: rows.filter(({ status }) => isOver(status)).length, total: rows.length }
    const replay = {
      ...this.#record.replay,
      ...change,
      progress,
      cost_usd: spentOn(rows),
      updated_at: new Date().toISOString(),
    }
    this.#record = { ...this.#record, replay }
    await this.#write()
  }

  async #write(): Promise<void> {
    const write = () => this.#deps.records.write(this.#record)
    this.#written = this.#written.then(write, write)
    await this.#written
  }
}

const SPENT = 'The other forks have spent max_cost_usd. Start another replay with a higher one.'
const UNREADABLE =
  'The plan of this replay was encrypted with another key of the server. Start the server with the former key, or start another replay.'
