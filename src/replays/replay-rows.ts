/** The replays of instances that share a database: any of them shows each, and continues those of an instance that has ended. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Problem } from '../contract/problem.ts'
import type { Sealer } from '../security/sealer.ts'
import type { ReplayTable } from '../storage/instances.ts'
import type { ReplayFiles } from './replay-files.ts'
import type { ReplayRecord, ReplayRecords, SharedReplays } from './replay-record.ts'
import { ReplayTexts, readShown } from './replay-record.ts'

export type SharedReplayDeps = {
  readonly table: ReplayTable
  /** The replays that this server has made while it was alone. */
  readonly files: Pick<ReplayFiles, 'readAll' | 'remove'>
  readonly sealerOf: (replayId: string) => Sealer
  readonly onDamaged: (error: unknown) => void
}

const RETRY_MS = 1000

export class SharedReplayRecords implements ReplayRecords, SharedReplays {
  readonly shared: SharedReplays = this
  readonly #deps: SharedReplayDeps
  readonly #texts: ReplayTexts
  readonly #closing = new AbortController()
  /** The replays that this instance may have without knowing it, because an answer of the database was lost. */
  readonly #uncertain = new Set<string>()

  constructor(deps: SharedReplayDeps) {
    this.#deps = deps
    this.#texts = new ReplayTexts(deps.sealerOf)
  }

  async readAll(): Promise<ReplayRecord[]> {
    const { table, files } = this.#deps
    const foundRecords: ReplayRecord[] = []
    for (const record of await files.readAll()) {
      const { id } = record.replay
      if ((await table.read({ id })) === undefined && !(await this.create(record))) foundRecords.push(record)
      await files.remove(id)
    }
    return [...foundRecords, ...(await this.adopt())]
  }

  async create(record: ReplayRecord): Promise<ReplayRecord | undefined> {
    const { id } = record.replay
    const creating = this.#deps.table.create({ ...this.#rowOf(record), key: record.idempotency?.key })
    const text = await creating.catch((error: unknown) => {
      this.#uncertain.add(id)
      throw error
    })
    if (text === undefined) return undefined
    this.#texts.forget(id)
    return readShown(text)
  }

  async write(record: ReplayRecord): Promise<void> {
    const { signal } = this.#closing
    for (;;) {
      try {
        return await this.#deps.table.write(this.#rowOf(record))
      } catch (error) {
        if (signal.aborted || !(error instanceof Problem) || error.code !== 'storage_unavailable') throw error
        await sleep(RETRY_MS, undefined, { signal, ref: false }).catch(() => {})
      }
    }
  }

  close(): void {
    this.#closing.abort()
  }

  async remove(id: string): Promise<void> {
    this.#texts.forget(id)
    await this.#deps.table.remove(id)
  }

  async find(id: string): Promise<ReplayRecord | undefined> {
    const text = await this.#deps.table.read({ id })
    return text === undefined ? undefined : readShown(text)
  }

  async findByKey(key: string): Promise<ReplayRecord | undefined> {
    const text = await this.#deps.table.read({ key })
    return text === undefined ? undefined : readShown(text)
  }

  async *before(id: string | undefined): AsyncGenerator<ReplayRecord> {
    for (let last = id; ;) {
      const page = await this.#deps.table.page(last)
      if (page.length === 0) return
      last = page.at(-1)?.id
      const texts = page.map(({ text }) => text)
      yield* this.#readEach(texts, readShown)
    }
  }

  async adopt(): Promise<ReplayRecord[]> {
    const { table } = this.#deps
    for (const id of await table.orphans()) this.#uncertain.add(id)
    if (this.#uncertain.size === 0) return []
    const ids = [...this.#uncertain]
    const texts = await table.adopt(ids)
    for (const id of ids) this.#uncertain.delete(id)
    return this.#readEach(texts, (text) => this.#texts.read(text))
  }

  /** Leaves out what cannot be read: a newer version may have written it. */
  #readEach(texts: readonly string[], read: (text: string) => ReplayRecord): ReplayRecord[] {
    return texts.flatMap((text) => {
      try {
        return [read(text)]
      } catch (error) {
        this.#deps.onDamaged(error)
        return []
      }
    })
  }

  #rowOf(record: ReplayRecord) {
    const { id, rows } = record.replay
    // Other instances hide the forks that there are.
    const forks = record.isTidied ? [] : rows.map(({ conversation_id: fork }) => fork)
    return { id, forks, text: this.#texts.write(record) }
  }
}
