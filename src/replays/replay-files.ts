/** The stored replays: one file each, with the plan encrypted, because it may contain keys of model endpoints. */
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { ReplayRow } from '../contract/replay.ts'
import { Replay, ReplayPlan } from '../contract/replay.ts'
import { makeDirectories } from '../files/make-directories.ts'
import { replaceFile } from '../lib/durable-file.ts'
import { ignoreMissing } from '../lib/error-code.ts'
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

export type ReplayFilesDeps = {
  /** Created by the first write. */
  readonly directory: string
  readonly sealerOf: (replayId: string) => Sealer
  readonly onDamaged: (error: unknown, path: string) => void
}

export class ReplayFiles {
  readonly #deps: ReplayFilesDeps
  /** The plans as they are stored: a plan that cannot be decrypted is kept. */
  readonly #plans = new Map<string, string>()

  constructor(deps: ReplayFilesDeps) {
    this.#deps = deps
  }

  /** Returns all that can be read, oldest first. */
  async readAll(): Promise<ReplayRecord[]> {
    const { directory, onDamaged } = this.#deps
    const names = (await readdir(directory).catch(ignoreMissing)) ?? []
    const foundRecords: ReplayRecord[] = []
    for (const name of names.toSorted()) {
      if (!name.endsWith('.json')) continue
      const path = join(directory, name)
      try {
        foundRecords.push(this.#parse(await readFile(path, 'utf8')))
      } catch (error) {
        onDamaged(error, path)
      }
    }
    return foundRecords
  }

  /** Durable. One write of a replay at a time. */
  async write({ plan, ...record }: ReplayRecord): Promise<void> {
    const { directory, sealerOf } = this.#deps
    const { id, status } = record.replay
    const seal = () => sealerOf(id).seal(Buffer.from(JSON.stringify(plan)))
    const sealedPlan = isOver(status) ? undefined : (this.#plans.get(id) ?? seal().toString('base64'))
    if (sealedPlan === undefined) this.#plans.delete(id)
    else this.#plans.set(id, sealedPlan)
    await makeDirectories(directory, 0o700)
    await replaceFile(this.#pathOf(id), JSON.stringify({ ...record, plan: sealedPlan }), {
      draft: `${this.#pathOf(id)}.new`,
    })
  }

  async remove(id: string): Promise<void> {
    this.#plans.delete(id)
    await rm(this.#pathOf(id), { force: true })
  }

  #parse(text: string): ReplayRecord {
    const { plan, ...record } = StoredReplay.parse(JSON.parse(text))
    const { id, status } = record.replay
    if (plan === undefined || isOver(status)) return { ...record, plan: undefined }
    this.#plans.set(id, plan)
    const content = this.#deps.sealerOf(id).unseal(Buffer.from(plan, 'base64'))
    return { ...record, plan: content && ReplayPlan.parse(JSON.parse(content.toString())) }
  }

  #pathOf(id: string): string {
    return join(this.#deps.directory, `${id}.json`)
  }
}

export const isOver = (status: ReplayRow['status']): boolean => status !== 'pending' && status !== 'running'
