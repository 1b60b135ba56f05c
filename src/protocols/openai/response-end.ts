/** How a response has ended, as its run has. Pure. */
import type { EventOf } from '../../contract/events/event.ts'
import { isUnknownModel } from '../../llm/error-rules.ts'
import type { ErrorObject } from './openai-error.ts'
import { UNKNOWN_MODEL } from './openai-error.ts'

export type ResponseEnd = {
  readonly status: 'completed' | 'failed' | 'incomplete' | 'cancelled'
  readonly error: Pick<ErrorObject, 'code' | 'message'> | null
  readonly incomplete_details: { readonly reason: string } | null
  /** Why the run ended; undefined if it waits for the client. */
  readonly stopReason: string | undefined
}

const CANCELLED: ReadonlySet<string> = new Set(['paused', 'cancelled', 'superseded', 'rejected'])
const FAILED: ReadonlySet<string> = new Set(['error', 'server_restart', 'owner_lost', 'stuck', 'hook'])

export function endOf(
  { stop_reason, interrupted }: EventOf<'Result'>,
  failure: EventOf<'ErrorEvent'> | undefined,
  isAtLimit = false,
): ResponseEnd {
  const end = { error: null, incomplete_details: null, stopReason: stop_reason }
  if (interrupted || CANCELLED.has(stop_reason)) return { ...end, status: 'cancelled' }
  if (FAILED.has(stop_reason) && !isAtLimit) {
    const message = failure?.message ?? `The run ended: ${stop_reason}. Continue with previous_response_id.`
    return { ...end, status: 'failed', error: { code: codeOfFailure(failure), message } }
  }
  if (stop_reason === 'completed' || stop_reason === 'finished') return { ...end, status: 'completed' }
  const reason = stop_reason === 'content_filter' ? 'content_filter' : 'max_output_tokens'
  return { ...end, status: 'incomplete', incomplete_details: { reason } }
}

function codeOfFailure(failure: EventOf<'ErrorEvent'> | undefined): string {
  if (isUnknownModel(failure?.message)) return UNKNOWN_MODEL
  return failure?.error_type === 'rate_limit' ? 'rate_limit_exceeded' : 'server_error'
}
