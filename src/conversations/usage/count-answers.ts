/** Reads from a log what its answers took, as the state of the conversation counts it. */
import type { Event } from '../../contract/events/event.ts'
import { Problem } from '../../contract/problem.ts'
import { NO_USAGE, addUsage } from '../../contract/values/message.ts'
import type { LogViews } from '../../events/event-store.ts'
import { isUnreadable } from '../../lib/error-code.ts'
import { readPages } from '../../events/read-pages.ts'
import type { Summary } from '../../storage/storage.ts'
import type { CountedAnswer, CountedConversation } from '../../storage/usage.ts'

const TYPES = new Set(['AssistantMessage', 'Condensation', 'ConfigUpdate', 'ForkedFrom'] satisfies Event['type'][])

/** One read of a log, in events and bytes. */
const PAGE = { limit: 1000, maxBytes: 4 * 1024 * 1024 }

/** Returns what follows this event; undefined for a conversation that was deleted meanwhile, or is damaged. */
export async function countAnswers(
  logs: LogViews,
  { id, userId, labels }: Summary,
  afterSeq: number,
): Promise<CountedConversation | undefined> {
  try {
    await using log = await logs.view(id)
    let answers: CountedAnswer[] = []
    for await (const { events } of readPages(log, { afterSeq, types: TYPES, ...PAGE }))
      for (const { event } of events) {
        // A fork counts only its own answers: those before are counted in its original.
        if (event.type === 'ForkedFrom') answers = []
        else answers.push(...answerOf(event))
      }
    return { id, userId, labels, throughSeq: log.head, answers }
  } catch (error) {
    if (error instanceof Problem ? SKIPPED.has(error.code) : isUnreadable(error)) return undefined
    throw error
  }
}

const SKIPPED: ReadonlySet<string> = new Set([
  'conversation_not_found',
  'conversation_deleted',
  'conversation_damaged',
  // Its log was closed meanwhile: the next report reads it.
  'unavailable',
])

function answerOf(event: Event): CountedAnswer[] {
  if (event.type !== 'AssistantMessage' && event.type !== 'Condensation' && event.type !== 'ConfigUpdate') return []
  const { seq, timestamp, model, usage, cost_usd: costUsd } = event
  if (model === undefined || !usage) return []
  const { input_tokens, output_tokens, cached_tokens, cache_write_tokens = 0 } = addUsage(NO_USAGE, usage)
  const cachedTokens = { cachedTokens: cached_tokens, cacheWriteTokens: cache_write_tokens }
  return [
    {
      seq,
      at: Date.parse(timestamp),
      model,
      inputTokens: input_tokens,
      outputTokens: output_tokens,
      ...cachedTokens,
      costUsd,
    },
  ]
}
