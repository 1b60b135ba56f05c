/** A replay as it is stored: a text with its plan encrypted, because that may contain keys of model endpoints. */
import { z } from 'zod'
import type { ReplayRow } from '../contract/replay.ts'
import { Replay, ReplayPlan } from '../contract/replay.ts'
import type { Sealer } from '../security/sealer.ts'

const StoredReplay = z.object({
  replay: Replay,
  /** The owners of the originals, for keys that see conversations of one user only. */
  sources: z.array(z.object({ id: z.string(), userId: z.string().optional() })),
  /** What forks may spend that have begun, in USD, by their id. */
  shares: z.record(z.string(), z.number()),
  /** The key with which it was created. */
  idempotency: z.object({ key: z.string(), bodyHash: z.string() }).optional(),
  /** Whether a client has cancelled it: it also ends if the server does before. */
  isCancelled: z.boolean().default(false),
  /** Whether its forks are deleted. */
  isTidied: z.boolean(),
  /** Absent after the end. */
  plan: z.base64().optional(),
})
export type ReplayRecord = Omit<z.infer<typeof StoredReplay>, 'plan'> & {
  /** Undefined: it has ended, or no key of the server decrypts it. */
  readonly plan: ReplayPlan | undefined
}

/** The stored replays: in files, or in a database. */
export interface ReplayRecords {
  /** Returns those of this server that can be read, oldest first. */
  readAll(): Promise<ReplayRecord[]>
  /** Durable. One write of a replay at a time. Waits while a database is away. */
  write(record: ReplayRecord): Promise<void>
  remove(id: string): Promise<void>
  /** Undefined where no other instance has replays. */
  readonly shared?: SharedReplays
}

/** The replays of all instances of a database. */
export interface SharedReplays {
  /** Stores a new replay. Resolves to an earlier one with its key instead, if there is one of the last day. */
  create(record: ReplayRecord): Promise<ReplayRecord | undefined>
  find(id: string): Promise<ReplayRecord | undefined>
  findByKey(key: string): Promise<ReplayRecord | undefined>
  /** Yields the replays before that id without their rows, newest first. */
  before(id: string | undefined): AsyncIterable<ReplayRecord>
  /** Makes replays of instances that have ended those of this one. Resolves to them, and to those whose creation seemed to fail. */
  adopt(): Promise<ReplayRecord[]>
  /** Ends the attempts to write while the database is away. */
  close(): void
}

/** Makes texts of replays, and reads them. */
export class ReplayTexts {
  readonly #sealerOf: (replayId: string) => Sealer
  /** The plans as they are stored: a plan that cannot be decrypted is kept. */
  readonly #plans = new Map<string, string>()

  constructor(sealerOf: (replayId: string) => Sealer) {
    this.#sealerOf = sealerOf
  }

  write({ plan, ...record }: ReplayRecord): string {
    const { id, status } = record.replay
    const seal = () => this.#sealerOf(id).seal(Buffer.from(JSON.stringify(plan)))
    const sealedPlan = isOver(status) ? undefined : (this.#plans.get(id) ?? seal().toString('base64'))
    if (sealedPlan === undefined) this.#plans.delete(id)
    else this.#plans.set(id, sealedPlan)
    return JSON.stringify({ ...record, plan: sealedPlan })
  }

  /** Reads one that this server continues. */
  read(text: string): ReplayRecord {
    const { plan, ...record } = StoredReplay.parse(JSON.parse(text))
    const { id, status } = record.replay
    if (plan === undefined || isOver(status)) return { ...record, plan: undefined }
    this.#plans.set(id, plan)
    const content = this.#sealerOf(id).unseal(Buffer.from(plan, 'base64'))
    return { ...record, plan: content && ReplayPlan.parse(JSON.parse(content.toString())) }
  }

  forget(id: string): void {
    this.#plans.delete(id)
  }
}

/** Reads one that another instance may continue: without its plan. */
export const readShown = (text: string): ReplayRecord => ({ ...StoredReplay.parse(JSON.parse(text)), plan: undefined })

export const isOver = (status: ReplayRow['status']): boolean => status !== 'pending' && status !== 'running'
