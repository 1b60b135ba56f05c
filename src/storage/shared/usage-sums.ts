/** What both databases have in common to sum what answers took. */
import type { CountedAnswer, UsageQuery, UsageSum } from '../usage.ts'

/** The columns of an answer, in the order of `valuesOfAnswer`. */
export const ANSWER_COLUMNS = 'at, seq, model, input_tokens, output_tokens, cached_tokens, cache_write_tokens, cost_usd'

export const valuesOfAnswer = (answer: CountedAnswer) => [
  answer.at,
  answer.seq,
  answer.model,
  answer.inputTokens,
  answer.outputTokens,
  answer.cachedTokens,
  answer.cacheWriteTokens,
  answer.costUsd ?? null,
]

const SUMS = ['input_tokens', 'output_tokens', 'cached_tokens', 'cache_write_tokens']

/** Tables: `a` the answers, `c` their conversations, `l` a label. An empty text for what has none. */
export const GROUPS: Readonly<Record<NonNullable<UsageQuery['by']> | 'all', string>> = {
  all: "''",
  model: 'a.model',
  user_id: "coalesce(c.user_id, '')",
  label: "coalesce(l.value, '')",
  conversation: 'cast(c.id as text)',
}

/**
 * Returns the statement for the rows of `sumOf`. `from`: joins the answers, and has a column `bucket`. `limit`: of groups, as a
 * parameter.
 */
export function sumStatement(group: string, from: string, limit: string): string {
  const sums = SUMS.map((name) => `sum(cast(a.${name} as double precision)) as ${name}`)
  const again = [...SUMS, 'answers', 'cost_usd', 'unpriced'].map((name) => `sum(${name}) as ${name}`)
  return `
    with cells as (
      select bucket, ${group} as grouped, count(*) as answers, ${sums.join(', ')},
        coalesce(sum(a.cost_usd), 0) as cost_usd, sum(case when a.cost_usd is null then 1 else 0 end) as unpriced
      from ${from}
      group by 1, 2
    ), places as (
      select grouped, row_number() over (
        order by sum(cost_usd) desc, sum(input_tokens + output_tokens) desc, grouped
      ) as place
      from cells group by grouped
    )
    select bucket, case when place <= ${limit} then grouped end as grouped, min(place) as place, ${again.join(', ')}
    from cells join places using (grouped)
    group by 1, 2
    order by bucket, place`
}

export const sumOf = (row: Readonly<Record<string, unknown>>): UsageSum => ({
  bucket: Number(row['bucket']),
  group: typeof row['grouped'] === 'string' ? row['grouped'] : undefined,
  answers: Number(row['answers']),
  inputTokens: Number(row['input_tokens']),
  outputTokens: Number(row['output_tokens']),
  cachedTokens: Number(row['cached_tokens']),
  cacheWriteTokens: Number(row['cache_write_tokens']),
  costUsd: Number(row['cost_usd']),
  unpriced: Number(row['unpriced']),
})
