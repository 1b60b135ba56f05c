/** What the answers of models took and cost, over all conversations. */
import { z } from 'zod'

export const MAX_BUCKETS = 1000

/** Asks the database of zones of the running program. */
function isTimeZone(name: string): boolean {
  try {
    return Boolean(new Intl.DateTimeFormat('en', { timeZone: name }))
  } catch {
    return false
  }
}

const TIMES = z.union([z.iso.datetime({ offset: true }), z.iso.date()])

/** No answer is older; a later time has no four digits of a year in some zone. */
const [EARLIEST, LATEST] = [0, Date.UTC(9999, 11, 30)]

function isUsageTime(text: string): boolean {
  const ms = Date.parse(text)
  return TIMES.safeParse(text).success && ms >= EARLIEST && ms <= LATEST
}

const UsageTime = z.string().refine(isUsageTime, {
  error: 'must be a time such as 2026-01-31T12:00:00Z, or a date such as 2026-01-31, from 1970 to 9999',
})

export const GetUsage = z.strictObject({
  from: UsageTime.optional().describe(
    'A time, or a date: the start of that day in `tz`. Default: 30 days before `to`.',
  ),
  to: UsageTime.optional().describe('Exclusive. Default: now.'),
  tz: z
    .string()
    .max(64)
    .refine(isTimeZone, { error: 'must be a time zone of the IANA database, such as Europe/Berlin' })
    .default('UTC')
    .describe('The time zone of days and hours.'),
  bucket: z.enum(['day', 'hour']).optional().describe('Default: the whole time is one.'),
  by: z
    .enum(['model', 'user_id', 'label', 'conversation'])
    .optional()
    .describe('One row for each. A conversation with several labels counts for each of them.'),
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(100)
    .default(10)
    .describe('How many models, users, labels or conversations have rows: those that cost most. The rest is one row.'),
})
export type GetUsage = z.infer<typeof GetUsage>

const AMOUNTS = {
  answers: z.int().nonnegative().describe('Answers of models, also of subagents, and for summaries and titles.'),
  input_tokens: z.number().nonnegative(),
  output_tokens: z.number().nonnegative(),
  cached_tokens: z.number().nonnegative().describe('Of the input tokens.'),
  cache_write_tokens: z.number().nonnegative().describe('Of the input tokens.'),
  cost_usd: z.number().nonnegative(),
  unpriced: z.int().nonnegative().describe('Answers without a known cost: those of unknown models, and cut off ones.'),
}

export const UsageAmounts = z.object(AMOUNTS).meta({ id: 'UsageAmounts' })
export type UsageAmounts = z.infer<typeof UsageAmounts>

export const UsageRow = z
  .object({
    start: z.iso.datetime().describe('Of the bucket; of the first one, `from`.'),
    group: z
      .string()
      .optional()
      .describe('The model, user, label or id of the conversation. Empty: conversations without user or label.'),
    rest: z.literal(true).optional().describe('All groups beyond `limit`.'),
    title: z.string().optional().describe('Of a conversation that exists, or the beginning of its first message.'),
    ...AMOUNTS,
  })
  .meta({ id: 'UsageRow' })
export type UsageRow = z.infer<typeof UsageRow>

export const UsageReport = z
  .object({
    from: z.iso.datetime(),
    to: z.iso.datetime(),
    total: UsageAmounts,
    items: z.array(UsageRow).describe('By bucket, those that cost most first. Buckets without answers have no row.'),
  })
  .meta({
    id: 'UsageReport',
    examples: [
      {
        from: '2026-01-30T23:00:00.000Z',
        to: '2026-01-31T23:00:00.000Z',
        total: {
          answers: 3,
          input_tokens: 5210,
          output_tokens: 420,
          cached_tokens: 4096,
          cache_write_tokens: 0,
          cost_usd: 0.0124,
          unpriced: 0,
        },
        items: [
          {
            start: '2026-01-30T23:00:00.000Z',
            group: 'gpt-5',
            answers: 3,
            input_tokens: 5210,
            output_tokens: 420,
            cached_tokens: 4096,
            cache_write_tokens: 0,
            cost_usd: 0.0124,
            unpriced: 0,
          },
        ],
      },
    ],
  })
export type UsageReport = z.infer<typeof UsageReport>
