/** The table of replays: the instance that has each, its forks, and the replay itself. */
import type { Peer, ReplayTable, StoredReplay } from '../instances.ts'
import type { RowOwnership } from './ownership.ts'
import { ownedByAnother } from './ownership.ts'
import type { PostgresRow } from './session.ts'

/** Replays that are read at a time. */
const PAGE = 50

export class ReplayRows implements ReplayTable {
  readonly #ownership: RowOwnership

  constructor(ownership: RowOwnership) {
    this.#ownership = ownership
  }

  async create({
    id,
    forks,
    key,
    text,
  }: StoredReplay & { readonly key: string | undefined }): Promise<string | undefined> {
    const { database, incarnation } = this.#ownership
    for (;;) {
      if ((await database.write(CREATE, [id, incarnation, forks, key, text])).length > 0) return undefined
      const earlier = key === undefined ? undefined : await this.read({ key })
      if (earlier !== undefined) return earlier
      // The key is free since, unless this instance may write nothing.
      const [row] = await database.read('select has_ended($1) as is_over', [incarnation])
      if (row?.['is_over'] === true) throw ownedByAnother()
    }
  }

  async write({ id, forks, text }: StoredReplay): Promise<void> {
    const { database, incarnation } = this.#ownership
    if ((await database.write(WRITE, [id, incarnation, forks, text])).length === 0) throw ownedByAnother()
  }

  async remove(id: string): Promise<void> {
    const { database, incarnation } = this.#ownership
    await database.write(REMOVE, [id, incarnation])
  }

  async read(replay: { readonly id: string } | { readonly key: string }): Promise<string | undefined> {
    const { database } = this.#ownership
    const [row] = 'id' in replay ? await database.read(READ, [replay.id]) : await database.read(READ_KEY, [replay.key])
    return row && textOf(row)
  }

  async page(before: string | undefined): Promise<Pick<StoredReplay, 'id' | 'text'>[]> {
    const rows = await this.#ownership.database.read(PAGE_BEFORE, [before, PAGE])
    return rows.map((row) => ({ id: String(row['id']), text: textOf(row) }))
  }

  async orphans(): Promise<string[]> {
    const { database, incarnation } = this.#ownership
    return (await database.read(ORPHANS, [incarnation])).map(({ id }) => String(id))
  }

  async adopt(ids: readonly string[]): Promise<string[]> {
    const { database, incarnation } = this.#ownership
    return (await database.write(ADOPT, [incarnation, ids])).map(textOf)
  }

  async otherOwnerOf(id: string): Promise<Peer | undefined> {
    const { database, incarnation } = this.#ownership
    const [row] = await database.read(OTHER_OWNER, [id, incarnation])
    return row && { instance: Number(row['id']), address: String(row['address']) }
  }

  async forks(): Promise<string[]> {
    return (await this.#ownership.database.read(FORKS)).map(({ id }) => String(id))
  }
}

const textOf = (row: PostgresRow): string => String(row['record'])

// A repeated statement finds its own rows. Of two with one key, the second waits for the first.
const CREATE = `
  with removed as (
    delete from replay_keys where key in (
      select key from replay_keys where at < now() - interval '1 day' and key <> $4 order by at limit 2)
  ), claimed as (
    insert into replay_keys as k (key, replay_id) select $4, $1 where $4::text is not null and not has_ended($2)
    on conflict (key) do update set replay_id = $1, at = now()
    where k.replay_id = $1 or k.at < now() - interval '1 day'
    returning key
  )
  insert into replays (id, owner, forks, key, record) select $1, $2, $3, $4, $5
  where not has_ended($2) and ($4::text is null or exists (select from claimed))
  on conflict (id) do update set record = excluded.record where replays.owner = $2
  returning id`
const WRITE = `
  update replays set forks = $3, record = $4 where id = $1 and owner = $2 and not has_ended($2) returning id`
const REMOVE = `
  with removed as (delete from replays where id = $1 and owner = $2 returning key)
  delete from replay_keys where replay_id = $1 and key in (select key from removed)`
const READ = 'select record from replays where id = $1 and record is not null'
const READ_KEY = `
  select r.record from replay_keys k join replays r on r.id = k.replay_id
  where k.key = $1 and k.at > now() - interval '1 day' and r.record is not null`
// Without the rows of the tables, which lists do not show.
const PAGE_BEFORE = `
  select id, jsonb_set(record::jsonb, '{replay,rows}', '[]')::text as record from replays
  where record is not null and ($1::uuid is null or id < $1) order by id desc limit $2`
const ORPHANS = 'select id from replays where owner <> $1 and has_ended(owner) and record is not null'
// A repeated statement returns what it has adopted.
const ADOPT = `
  update replays set owner = $1
  where id = any($2::uuid[]) and (owner = $1 or has_ended(owner)) and not has_ended($1) and record is not null
  returning record`
const OTHER_OWNER = `
  select i.id, i.address from replays r join incarnations i on i.id = r.owner
  where r.id = $1 and i.id <> $2 and i.ended_at is null and i.address is not null`
const FORKS = 'select unnest(forks) as id from replays'
