/** What answers took, in the database, also of the conversations of other instances. */
import { ANSWER_COLUMNS, GROUPS, sumOf, sumStatement, valuesOfAnswer } from '../shared/usage-sums.ts'
import type { CountedConversation, UsageQuery, UsageSum, UsageTable } from '../usage.ts'
import type { PostgresDatabase } from './database.ts'

export class UsageRows implements UsageTable {
  readonly #database: PostgresDatabase

  constructor(database: PostgresDatabase) {
    this.#database = database
  }

  async counted(): Promise<ReadonlyMap<string, number>> {
    const rows = await this.#database.read('select id, through_seq from usage_conversations')
    return new Map(rows.map((row) => [String(row['id']), Number(row['through_seq'])]))
  }

  async add(conversations: readonly CountedConversation[]): Promise<void> {
    const answers = conversations.flatMap(({ id, answers }) => answers.map((each) => [id, ...valuesOfAnswer(each)]))
    const notedRows = conversations.map(({ id, throughSeq, userId, labels }) => [
      id,
      throughSeq,
      userId ?? null,
      labels,
    ])
    await this.#database.write(ADD, [JSON.stringify(notedRows), JSON.stringify(answers)])
  }

  async sum({ edges, by, only, limit }: UsageQuery): Promise<UsageSum[]> {
    const text = sumStatement(GROUPS[by ?? 'all'], fromOf(by), '$5')
    const values = [edges.slice(0, -1), edges.slice(1), only.conversations ?? null, only.userId ?? null, limit]
    return (await this.#database.read(text, values)).map(sumOf)
  }
}

/** Two instances may count the same conversation at the same time: the further one counts. In one order, so that none waits for another. */
const ADD = `
  with noted as (
    insert into usage_conversations (id, through_seq, user_id, labels)
    select (e ->> 0)::uuid, (e ->> 1)::bigint, e ->> 2, array(select json_array_elements_text(e -> 3))
    from json_array_elements($1::json) e order by e ->> 0
    on conflict (id) do update
      set through_seq = excluded.through_seq, user_id = excluded.user_id, labels = excluded.labels
      where excluded.through_seq > usage_conversations.through_seq
  )
  insert into usage_answers (conversation_id, ${ANSWER_COLUMNS})
  select (e ->> 0)::uuid, (e ->> 1)::bigint, (e ->> 2)::bigint, e ->> 3, (e ->> 4)::float8, (e ->> 5)::float8,
    (e ->> 6)::float8, (e ->> 7)::float8, (e ->> 8)::float8
  from json_array_elements($2::json) e order by 2, 1, 3
  on conflict do nothing`

function fromOf(by: UsageQuery['by']): string {
  const labels = by === 'label' ? 'left join lateral unnest(c.labels) as l (value) on true' : ''
  return `unnest($1::bigint[], $2::bigint[]) with ordinality as b (start, ending, number)
    cross join lateral (select b.number - 1 as bucket) n
    join usage_answers a on a.at >= b.start and a.at < b.ending
    join usage_conversations c on c.id = a.conversation_id ${labels}
    where ($3::uuid[] is null or c.id = any($3)) and ($4::text is null or c.user_id = $4)`
}
