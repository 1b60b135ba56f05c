/** The table of replays: the instance that has each, and its forks. The replays themselves are in the data directories. */
import type { Peer, ReplayTable } from '../instances.ts'
import type { RowOwnership } from './ownership.ts'

export class ReplayRows implements ReplayTable {
  readonly #ownership: RowOwnership

  constructor(ownership: RowOwnership) {
    this.#ownership = ownership
  }

  async note({ id, forks, key }: Parameters<ReplayTable['note']>[0]): Promise<void> {
    const { database, incarnation } = this.#ownership
    await database.write(NOTE, [id, incarnation, forks, key])
  }

  async remove(id: string): Promise<void> {
    await this.#ownership.database.write('delete from replays where id = $1', [id])
  }

  async otherOwnerOf(replay: Parameters<ReplayTable['otherOwnerOf']>[0]): Promise<Peer | undefined> {
    const { database, incarnation } = this.#ownership
    const [row] =
      'id' in replay
        ? await database.read(otherOwner('r.id'), [replay.id, incarnation])
        : await database.read(otherOwner('r.key'), [replay.key, incarnation])
    return row && { instance: Number(row['id']), address: String(row['address']) }
  }

  async forksElsewhere(): Promise<string[]> {
    const { database, incarnation } = this.#ownership
    return (await database.read(FORKS, [incarnation])).map(({ id }) => String(id))
  }
}

const NOTE = `
  insert into replays (id, owner, forks, key) values ($1, $2, $3, $4)
  on conflict (id) do update set owner = excluded.owner, forks = excluded.forks`
const otherOwner = (column: string) => `
  select i.id, i.address from replays r join incarnations i on i.id = r.owner
  where ${column} = $1 and i.id <> $2 and i.ended_at is null and i.address is not null
  order by r.id desc limit 1`
const FORKS = 'select unnest(forks) as id from replays where owner <> $1'
