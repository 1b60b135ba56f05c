/** How the loop of a run ends, and what is stored then. */
import type { LoopEnd } from '../../agent/loop-end.ts'
import type { LoopWait } from '../../agent/loop.ts'
import { uuid7 } from '../../lib/uuid7.ts'
import type { Intent } from '../../state/intents.ts'

/** `requestedAt` is the log's head at the last model request, or 0 if there was none. */
export type RunEnd = (LoopEnd | LoopWait) & { readonly requestedAt: number }

export function intentToEnd(runId: string, end: RunEnd, begun: readonly string[]): Intent {
  if ('asks' in end) return { kind: 'ask', runId, requestId: uuid7(), toolUses: end.asks, hooked: end.hooked }
  if ('waitsOutside' in end) return { kind: 'await_outside', runId }
  if ('asking' in end)
    return { kind: 'ask_user', runId, asking: end.asking.map((call) => ({ ...call, questionId: uuid7() })) }
  return { kind: 'end_run', runId, ...end, begun, newRunId: uuid7(), now: Date.now() }
}
