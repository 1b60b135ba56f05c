/** The replays of the server: starts, shows, cancels and continues them, and deletes their forks in time. */
import { z } from 'zod'
import { Problem } from '../contract/problem.ts'
import type { CreateReplay, ListReplays, Replay, ReplayPage, ReplayRow } from '../contract/replay.ts'
import { createInFlight, keyInFlight } from '../idempotency/in-flight.ts'
import { settlesWithin } from '../lib/bounded-wait.ts'
import { decodePageId, encodePageId } from '../lib/page-id.ts'
import { uuid7 } from '../lib/uuid7.ts'
import { refuseSecretsIn } from '../security/refuse-secrets.ts'
import { answerOnce, keptOf } from '../state/idempotency.ts'
import type { Idempotency } from '../state/idempotency.ts'
import { findReplayStart } from './find-replay-start.ts'
import type { ReplayRecord, ReplayRecords } from './replay-record.ts'
import { isOver } from './replay-record.ts'
import { ReplayRun } from './replay-run.ts'
import type { ReplayRunDeps } from './replay-run.ts'

/** Replays that work at the same time: of all clients, and of the conversations of one user. */
const MAX_RUNNING = 10
const MAX_OF_USER = 5
/** Tables are kept for 30 days after the last change, in milliseconds. */
const TABLE_LIFETIME_MS = 30 * 24 * 60 * 60 * 1000
/** How long a stop of the server waits for replays, in milliseconds. */
const CLOSE_TIMEOUT_MS = 1000
/** The longest time between two looks for forks to delete, in milliseconds. */
const TIDY_INTERVAL_MS = 60_000
/** The time between two looks for replays of instances that have ended, in milliseconds. */
const ADOPT_INTERVAL_MS = 3000

export type ReplaysDeps = Omit<ReplayRunDeps, 'records'> & { readonly records: ReplayRecords }

/** Whether the client sees a conversation. */
export type SeesSource = (source: { readonly id: string; readonly userId: string | undefined }) => boolean

export class Replays {
  readonly #deps: ReplaysDeps
  readonly #ended = new Map<string, ReplayRecord>()
  readonly #running = new Map<string, ReplayRun>()
  readonly #inFlight = createInFlight()
  /** The replays that begin when they are stored. */
  readonly #storing = new Set<ReplayRecord>()
  #timer: NodeJS.Timeout | undefined
  #adoptTimer: NodeJS.Timeout | undefined
  #adopting: Promise<void> = Promise.resolve()
  #tidying: Promise<void> = Promise.resolve()
  #isClosed = false

  constructor(deps: ReplaysDeps) {
    this.#deps = deps
  }

  /** Continues what an earlier server has begun. Call it when the conversations are known, before lists are shown. */
  async start(): Promise<void> {
    this.#takeAll(await this.#deps.records.readAll())
    this.#adoptLater()
  }

  #takeAll(records: readonly ReplayRecord[]): void {
    for (const record of records) {
      const { id } = record.replay
      if (this.#known(id) || [...this.#storing].some(({ replay }) => replay.id === id)) continue
      if (!record.isTidied) this.#hide(record)
      if (isOver(record.replay.status)) this.#ended.set(id, record)
      else this.#begin(record)
    }
    if (records.length > 0) this.#tidyLater(0)
  }

  /** Continues the replays of instances that have ended. */
  #adoptLater(): void {
    if (!this.#deps.records.shared || this.#isClosed) return
    // The storage reports its own failures.
    const adopt = () => this.#adopt().catch(() => {})
    const look = () => void (this.#adopting = adopt().then(() => this.#adoptLater()))
    this.#adoptTimer = setTimeout(look, ADOPT_INTERVAL_MS).unref()
  }

  async #adopt(): Promise<void> {
    this.#takeAll((await this.#deps.records.shared?.adopt()) ?? [])
  }

  /** Accepts an idempotency key, as a fork does. Throws a `Problem` for a source that cannot be replayed. */
  async post(request: CreateReplay, idempotency?: Idempotency): Promise<Replay> {
    if (!idempotency) return await this.#post(request, undefined)
    const earlier = await this.#deps.records.shared?.findByKey(idempotency.key)
    const knownRecords = earlier ? [earlier] : [...this.#all()]
    return await this.#once(idempotency, knownRecords, () =>
      this.#inFlight(idempotency.key, () => this.#post(request, idempotency)),
    )
  }

  async #once(
    idempotency: Idempotency,
    knownRecords: readonly ReplayRecord[],
    make: () => Promise<Replay>,
  ): Promise<Replay> {
    const rememberedReplays = knownRecords.flatMap((record) =>
      record.idempotency ? [{ ...record.idempotency, at: record.replay.created_at, replay: record.replay }] : [],
    )
    return await answerOnce(idempotency, { remembered: rememberedReplays, again: async ({ replay }) => replay, make })
  }

  /** Throws `replay_not_found`, also for one that the client may not see. */
  async get(id: string, sees: SeesSource): Promise<Replay> {
    const { shared } = this.#deps.records
    const record = this.#known(id) ?? (await shared?.find(id))
    if (record && seesAll(record.sources, sees)) return record.replay
    throw new Problem('replay_not_found', `There is no replay ${id}.`)
  }

  async list({ limit, page_id: pageId }: ListReplays, sees: SeesSource): Promise<ReplayPage> {
    const before = pageId === undefined ? undefined : decodePageId(pageId)?.[1]
    if (pageId !== undefined && !z.uuid().safeParse(before).success)
      throw new Problem(
        'invalid_cursor',
        'page_id was not issued by this server; leave it out to start from the first page.',
      )
    const rest: Replay[] = []
    for await (const { replay, sources } of this.#deps.records.shared?.before(before) ?? this.#before(before)) {
      if (seesAll(sources, sees)) rest.push(replay)
      if (rest.length > limit) break
    }
    const items = rest.slice(0, limit).map(({ rows: _rows, ...head }) => head)
    const last = items.at(-1)
    return { items, next_page_id: last && rest.length > limit ? encodePageId([last.created_at, last.id]) : null }
  }

  /** Returns those of this server, newest first. */
  #before(before: string | undefined): ReplayRecord[] {
    const earlierRecords = [...this.#all()].filter(({ replay: { id } }) => before === undefined || id < before)
    return earlierRecords.toSorted((one, other) => (one.replay.id < other.replay.id ? 1 : -1))
  }

  /** Resolves when its forks have ended. Does not change one that is over. Throws `unavailable` if no instance works on it now. */
  async cancel(id: string, sees: SeesSource): Promise<Replay> {
    await this.get(id, sees)
    // Its instance may have ended a moment ago.
    if (!this.#known(id)) await this.#adopt()
    await this.#running.get(id)?.cancel()
    const replay = await this.get(id, sees)
    if (isOver(replay.status)) return replay
    throw new Problem(
      'unavailable',
      'The instance that has this replay is stopping, or has just ended. Try again later.',
    )
  }

  /** Call it before the conversations are closed. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    clearTimeout(this.#adoptTimer)
    // A workdir that is being copied, or deleted, is left to the conversations, which end next.
    await settlesWithin(
      CLOSE_TIMEOUT_MS,
      Promise.all([this.#adopting, this.#tidying, ...this.#running.values().map((run) => run.close())]),
    )
    this.#deps.records.shared?.close()
  }

  async #post(request: CreateReplay, idempotency: Idempotency | undefined): Promise<Replay> {
    const { manager, records } = this.#deps
    const { conversation_ids: ids, at, repeat, ...plan } = request
    const sources: ReplayRecord['sources'] = []
    const rows: ReplayRow[] = []
    for (const id of ids) {
      const source = await manager.source(id)
      // One refusal now, instead of one in the row of each fork.
      refuseSecretsIn({ network: plan.network }, source.redactAnyCase)
      const userId = source.state.settings.user_id
      sources.push({ id, ...(userId !== undefined && { userId }) })
      const start = { from_conversation_id: id, at_seq: await findReplayStart(source, at), status: 'pending' as const }
      for (const [llm_config] of (plan.llm_configs ?? [{}]).entries())
        for (let attempt = 1; attempt <= repeat; attempt++)
          rows.push({ ...start, llm_config, attempt, conversation_id: uuid7() })
    }
    if (this.#isClosed) throw new Problem('unavailable', 'The server is stopping. Repeat the request later.')
    this.#refuseMany(sources)
    const now = new Date().toISOString()
    const progress = { done: 0, total: rows.length }
    const replay: Replay = {
      id: uuid7(),
      status: 'running',
      progress,
      max_cost_usd: plan.max_cost_usd,
      cost_usd: 0,
      created_at: now,
      updated_at: now,
      rows,
    }
    const keptKey = idempotency && { idempotency: keptOf(idempotency) }
    const record = { replay, sources, shares: {}, ...keptKey, isCancelled: false, isTidied: false, plan }
    this.#storing.add(record)
    try {
      const create = records.shared ? records.shared.create(record) : records.write(record)
      const earlier = await create
      // Another instance was faster.
      if (earlier && idempotency) return await this.#once(idempotency, [earlier], () => Promise.reject(keyInFlight()))
      this.#begin(record)
    } finally {
      this.#storing.delete(record)
    }
    return replay
  }

  /** One user leaves room for the others. */
  #refuseMany(sources: ReplayRecord['sources']): void {
    const working = [...this.#storing, ...[...this.#running.values()].map(({ record }) => record)]
    const isOf = (userId: string | undefined) => (record: ReplayRecord) =>
      record.sources.some((source) => source.userId === userId)
    const most = sources.map(({ userId }) => (userId === undefined ? 0 : working.filter(isOf(userId)).length))
    if (working.length >= MAX_RUNNING || Math.max(...most) >= MAX_OF_USER) throw new Problem('limit_reached', TOO_MANY)
  }

  #begin(record: ReplayRecord): void {
    // The next start begins it.
    if (this.#isClosed) return
    const { id } = record.replay
    this.#hide(record)
    const run = new ReplayRun(this.#deps, record)
    this.#running.set(id, run)
    void this.#noteEnd(run, id)
  }

  #hide({ replay }: ReplayRecord): void {
    for (const { conversation_id: id } of replay.rows) this.#deps.manager.hidden.add(id)
  }

  async #noteEnd(run: ReplayRun, id: string): Promise<void> {
    await run.ended
    this.#running.delete(id)
    this.#ended.set(id, run.record)
    this.#tidyLater(0)
  }

  #tidyLater(afterMs: number): void {
    if (this.#isClosed) return
    clearTimeout(this.#timer)
    const tidy = () => (this.#tidying = this.#tidying.then(() => this.#tidy()))
    this.#timer = setTimeout(() => void tidy(), afterMs).unref()
  }

  /** Deletes forks and tables whose time is over. Never rejects: the next look tries again. */
  async #tidy(): Promise<void> {
    const { logger, records } = this.#deps
    const now = Date.now()
    for (const record of this.#ended.values()) {
      const { id, keep_until: until, updated_at: updatedAt } = record.replay
      if (this.#isClosed) return
      try {
        if (!record.isTidied && until !== undefined && Date.parse(until) <= now) await this.#deleteForks(record)
        if (Date.parse(updatedAt) + TABLE_LIFETIME_MS > now || !this.#ended.get(id)?.isTidied) continue
        await records.remove(id)
        this.#ended.delete(id)
      } catch (error) {
        logger.warn({ err: error, replay_id: id }, 'the forks of a replay could not be deleted yet')
      }
    }
    if (this.#ended.size > 0) this.#tidyLater(TIDY_INTERVAL_MS)
  }

  async #deleteForks(record: ReplayRecord): Promise<void> {
    const { manager, records } = this.#deps
    const { rows } = record.replay
    for (const { conversation_id: id } of rows) if (await manager.find(id)) await manager.delete(id)
    const tidiedRecord = { ...record, isTidied: true }
    await records.write(tidiedRecord)
    this.#ended.set(record.replay.id, tidiedRecord)
    for (const { conversation_id: id } of rows) manager.hidden.delete(id)
  }

  *#all(): Iterable<ReplayRecord> {
    for (const run of this.#running.values()) yield run.record
    yield* this.#ended.values()
  }

  #known(id: string): ReplayRecord | undefined {
    return this.#running.get(id)?.record ?? this.#ended.get(id)
  }
}

const seesAll = (sources: ReplayRecord['sources'], sees: SeesSource): boolean =>
  sources.every(({ id, userId }) => sees({ id, userId }))

const TOO_MANY = `${MAX_RUNNING} replays are running, or ${MAX_OF_USER} of one user. Wait for one to end, or cancel one.`
