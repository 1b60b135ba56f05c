/** The addresses of the instances that share the database, and which of them has a conversation. */
import { z } from 'zod'
import type { AnnouncedPeer, Instances, Peer, RunLoad } from '../instances.ts'
import { ownerOfKey } from './creation-claims.ts'
import type { NotedIncarnation } from './former-incarnation.ts'
import type { KeptIncarnation } from './incarnation.ts'
import { isUuid } from './is-uuid.ts'
import type { RowOwnership } from './ownership.ts'
import type { PostgresRow } from './session.ts'
import { IS_KNOWN_VERSION } from './known-version.ts'

const Settings = z.record(z.string(), z.string())

export class InstanceRows implements Instances {
  readonly #ownership: RowOwnership
  readonly #former: NotedIncarnation | undefined
  readonly #renewals: Pick<KeptIncarnation, 'load'>

  /** `former`: the one of this data directory before, if its process is certainly dead. */
  constructor(ownership: RowOwnership, former: NotedIncarnation | undefined, renewals: Pick<KeptIncarnation, 'load'>) {
    this.#ownership = ownership
    this.#former = former
    this.#renewals = renewals
  }

  get own(): number {
    return this.#ownership.incarnation
  }

  async announce(address: string, settings: AnnouncedPeer['settings']): Promise<void> {
    await this.#ownership.database.write(ANNOUNCE, [this.own, address, JSON.stringify(settings)])
  }

  async others(): Promise<AnnouncedPeer[]> {
    const rows = await this.#ownership.database.read(OTHERS, [this.own])
    return rows.map((row) => ({
      instance: Number(row['id']),
      address: String(row['address']),
      settings: Settings.parse(JSON.parse(String(row['settings']))),
    }))
  }

  async otherOwnerOf(conversationId: string): Promise<Peer | undefined> {
    if (!isUuid(conversationId)) return undefined
    const [row] = await this.#ownership.database.read(OTHER_OWNER, [conversationId, this.own])
    return row && peerOf(row)
  }

  ownerOfKey(key: string): Promise<Peer | undefined> {
    return ownerOfKey(this.#ownership, key)
  }

  async ended(instances: readonly number[]): Promise<number[]> {
    const rows = await this.#ownership.database.read(ENDED, [instances])
    return rows.map(({ id }) => Number(id))
  }

  async endFormer(): Promise<void> {
    if (this.#former) await this.#ownership.database.write(END_FORMER, [this.#former.id, this.#former.startedAt])
  }

  async leave(): Promise<void> {
    await this.#ownership.database.write('update incarnations set is_leaving = true where id = $1', [this.own])
  }

  publishLoad(load: () => RunLoad): void {
    this.#renewals.load = load
  }

  async successor(): Promise<Peer | undefined> {
    const [row] = await this.#ownership.database.read(SUCCESSOR, [this.own])
    return row && peerOf(row)
  }

  async leastLoadedFor(conversationId: string): Promise<Peer | undefined> {
    if (!isUuid(conversationId)) return undefined
    const [row] = await this.#ownership.database.read(LEAST_LOADED, [this.own, conversationId])
    return row && peerOf(row)
  }

  async orphans(limit: number, except: readonly string[]): Promise<string[]> {
    const rows = await this.#ownership.database.read(ORPHANS, [this.own, limit, except])
    return rows.map(({ id }) => String(id))
  }

  async isOrphan(conversationId: string): Promise<boolean> {
    return (await this.#ownership.database.read(ORPHAN, [this.own, conversationId])).length > 0
  }
}

const ENDED = 'select id from incarnations where id = any($1::bigint[]) and ended_at is not null'
const END_FORMER = `
  update incarnations set ended_at = now() where id = $1 and started_at = $2::timestamptz and ended_at is null`
// The instance that has a replay takes its forks: it waits for their ends.
const WITHOUT_OWNER = `
  select distinct c.id from marks m join conversations c on c.id = m.conversation_id
  where c.has_log and (c.owner is null or (c.owner <> $1 and has_ended(c.owner)))
    and not exists (select from deletions d where d.conversation_id = c.id)
    and not exists (select from replays r where r.forks @> array[c.id] and r.owner <> $1 and r.record is not null)`
const ORPHANS = `${WITHOUT_OWNER} and c.id <> all($3::uuid[]) and ${IS_KNOWN_VERSION} order by c.id limit $2`
const ORPHAN = `${WITHOUT_OWNER} and c.id = $2`
const ANNOUNCE = 'update incarnations set address = $2, settings = $3 where id = $1'
const OTHERS = `
  select id, address, settings from incarnations
  where id <> $1 and ended_at is null and address is not null order by id`
const OTHER_OWNER = `
  select i.id, i.address from conversations c join incarnations i on i.id = c.owner
  where c.id = $1 and c.has_log and i.id <> $2 and i.ended_at is null and i.address is not null`
const PRESENT = 'id <> $1 and ended_at is null and address is not null and not is_leaving'
// An earlier version stores no load, and is as good as a full one.
const BY_LOAD = 'order by active_runs::float8 / nullif(run_limit, 0) nulls last, random() limit 1'
const SUCCESSOR = `select id, address from incarnations where ${PRESENT} ${BY_LOAD}`
const LEAST_LOADED = `
  select id, address from incarnations
  where ${PRESENT} and active_runs < run_limit and exists (
    select from conversations c
    where c.id = $2 and c.has_log and (c.owner is null or (c.owner <> $1 and has_ended(c.owner)))
  ) ${BY_LOAD}`

const peerOf = (row: PostgresRow): Peer => ({ instance: Number(row['id']), address: String(row['address']) })
