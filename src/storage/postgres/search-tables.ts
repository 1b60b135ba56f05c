/** The search index of a database, shared by all instances: each indexes what it finds missing. */
import type { FoundPlace, IndexedPart, SearchIndex, WordQuery } from '../search-index.ts'
import type { PostgresDatabase } from './database.ts'

export class SearchTables implements SearchIndex {
  readonly #database: PostgresDatabase

  constructor(database: PostgresDatabase) {
    this.#database = database
  }

  async heads(): Promise<ReadonlyMap<string, number>> {
    const rows = await this.#database.read('select conversation_id as id, seq from search_heads')
    return new Map(rows.map(({ id, seq }) => [String(id), Number(seq)]))
  }

  async add(parts: readonly IndexedPart[]): Promise<void> {
    // Two parts of one conversation cannot be added by one statement.
    for (const round of roundsOf(parts)) await this.#addRound(round)
  }

  async forget(ids: readonly string[]): Promise<void> {
    await this.#database.write(FORGET, [ids])
  }

  async find({ words, limit, after, ids }: WordQuery): Promise<readonly FoundPlace[]> {
    const match = words.map((word) => `'${word}':*`).join(' & ')
    const rows = await this.#database.read(FIND, [match, after?.at ?? null, after?.number ?? 0, ids ?? null, limit])
    return rows.map(({ id, seq, at, number }) => ({
      conversationId: String(id),
      seq: Number(seq),
      place: { at: Number(at), number: Number(number) },
    }))
  }

  async #addRound(parts: readonly IndexedPart[]): Promise<void> {
    const removedSpans = parts.flatMap((part) => part.removed.map((span) => ({ ...span, id: part.conversationId })))
    const events = parts.flatMap((part) => part.events.map((event) => ({ ...event, id: part.conversationId })))
    const [row] = await this.#database.write(ADD, [
      parts.map(({ conversationId }) => conversationId),
      parts.map(({ after }) => after),
      parts.map(({ through }) => through),
      removedSpans.map(({ id }) => id),
      removedSpans.map(({ afterSeq }) => afterSeq),
      removedSpans.map(({ beforeSeq }) => beforeSeq),
      events.map(({ id }) => id),
      events.map(({ seq }) => seq),
      events.map(({ at }) => at),
      events.map(({ words }) => words),
    ])
    if (Number(row?.['moved']) !== parts.length) throw new Error('the search index has other heads')
  }
}

function roundsOf(parts: readonly IndexedPart[]): IndexedPart[][] {
  const rounds: IndexedPart[][] = []
  const counts = new Map<string, number>()
  for (const part of parts) {
    const round = counts.get(part.conversationId) ?? 0
    counts.set(part.conversationId, round + 1)
    ;(rounds[round] ??= []).push(part)
  }
  return rounds
}

const FORGET = `
  with gone as (delete from search_words where conversation_id = any($1::uuid[]))
  delete from search_heads where conversation_id = any($1::uuid[])`

// A head that was moved by another instance, or by a first execution of this statement, stays.
const ADD = `
  with parts as (
    select * from unnest($1::uuid[], $2::bigint[], $3::bigint[]) p(id, after, through)
  ), begun as (
    insert into search_heads (conversation_id, seq)
    select p.id, p.through from parts p join conversations c on c.id = p.id where p.after = 0
    on conflict do nothing
    returning conversation_id as id
  ), continued as (
    update search_heads h set seq = p.through from parts p
    where h.conversation_id = p.id and h.seq = p.after and p.after > 0
    returning p.id
  ), moved as (
    select id from begun union all select id from continued
  ), removed as (
    delete from search_words w
    using unnest($4::uuid[], $5::bigint[], $6::bigint[]) r(id, after_seq, before_seq)
    where w.conversation_id = r.id and w.seq > r.after_seq and w.seq < r.before_seq and r.id in (select id from moved)
  ), added as (
    insert into search_words (conversation_id, seq, at, words)
    select e.id, e.seq, e.at, array_to_tsvector(string_to_array(e.words, ' '))
    from unnest($7::uuid[], $8::bigint[], $9::bigint[], $10::text[]) e(id, seq, at, words)
    where e.id in (select id from moved)
    order by e.at
  )
  select count(*) as moved from moved`

const FIND = `
  select conversation_id as id, seq, at, number from search_words
  where words @@ $1::tsquery and ($2::bigint is null or (at, number) < ($2::bigint, $3::bigint))
    and ($4::uuid[] is null or conversation_id = any($4::uuid[]))
  order by at desc, number desc limit $5`
