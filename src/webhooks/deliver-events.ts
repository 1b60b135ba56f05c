/**
 * Delivers events to one callback: reads the event feed and continues with the next event when this one is delivered or
 * given up.
 */
import { follow } from '../events/event-feed.ts'
import { headerOf } from '../events/event-header.ts'
import type { EventLog } from '../events/event-log.ts'
import type { StoredEvent } from '../events/event-store.ts'
import { sleepUnlessAborted } from '../lib/bounded-wait.ts'
import type { Failing } from './after-failure.ts'
import { afterFailure } from './after-failure.ts'
import type { Credentials, DeliveryForm } from './callback-record.ts'
import type { DeliveryHistory } from './delivery-history.ts'
import type { Attempt, CallbackDispatcher } from './dispatcher.ts'

export type Delivering = {
  readonly log: EventLog
  readonly dispatcher: CallbackDispatcher
  readonly url: string
  readonly credentials: Credentials
  /** Absent: all types. */
  readonly types: ReadonlySet<string> | undefined
  /** Undefined: deliveries are events. */
  readonly form: DeliveryForm | undefined
  readonly history: DeliveryHistory
  readonly progress: () => Progress
  /** Called immediately; progress is stored later. */
  readonly onProgress: (progress: Progress) => void
  readonly onDisable: (reason: string) => void
  /** Called if the log could not be read, or a body not be made. */
  readonly onError: (error: unknown) => void
}

/** `cursor`: seq up to which nothing is left to do. */
export type Progress = { readonly cursor: number; readonly failing: Failing | undefined }

/** Memory of a waiting callback: the backlog is on disk, and the feed resumes at the cursor. */
const LIMITS = { softBytes: 0, hardBytes: 64 * 1024, hardRecords: 256 }
const PAGE = { limit: 32, maxBytes: 64 * 1024 }

/** Resolves when it ends: by the signal, with the log, or because the callback was disabled. Never throws. */
export async function deliverEvents(subject: Delivering, signal: AbortSignal): Promise<void> {
  const state: AttemptState = { lastFailureAt: undefined, waitingSince: undefined }
  const unwatch = subject.dispatcher.watch(() => state.waitingSince)
  try {
    while (!signal.aborted && !subject.log.ended) {
      const waitMs = await deliverUntilFailure(subject, state, signal).catch((error: unknown) => {
        if (!signal.aborted) subject.onError(error)
        return subject.dispatcher.timing.backoff.longestMs
      })
      if (waitMs === 'over') return
      // Close the feed: while a receiver is down, its callback holds nothing except this timer.
      await sleepUnlessAborted(waitMs, signal)
    }
  } finally {
    unwatch()
  }
}

type AttemptState = {
  /** A time of `performance.now()`. */
  lastFailureAt: number | undefined
  /** The time when the current event was stored, while its delivery is attempted. */
  waitingSince: number | undefined
}

/** Returns how long to wait before continuing. */
async function deliverUntilFailure(
  subject: Delivering,
  state: AttemptState,
  signal: AbortSignal,
): Promise<number | 'over'> {
  const { log, types, dispatcher, progress, onProgress } = subject
  const { silenceMs: heartbeatMs } = dispatcher.timing
  const options = { afterSeq: progress().cursor, signal, limits: LIMITS, page: PAGE, heartbeatMs }
  for await (const { records, reachedSeq, end } of follow(log, { ...options, ...(types && { types }) })) {
    for (const record of records) {
      if (record.seq === undefined) continue // a transient event, which the callback did not ask for
      const waitMs = await deliverOne(subject, state, record, signal)
      if (waitMs !== undefined) return waitMs
    }
    if (reachedSeq > progress().cursor) onProgress({ ...progress(), cursor: reachedSeq })
    // The events that it was too slow for are on disk.
    if (end) return end === 'lagged' ? 0 : 'over'
  }
  return 'over'
}

/** Returns undefined if the next event may follow. */
async function deliverOne(
  subject: Delivering,
  state: AttemptState,
  storedEvent: StoredEvent,
  signal: AbortSignal,
): Promise<number | 'over' | undefined> {
  const { dispatcher, url, credentials, history, progress, onProgress, onDisable } = subject
  const { seq } = storedEvent
  const { id, type, timestamp } = headerOf(storedEvent)
  state.waitingSince = Date.parse(timestamp)
  const body = await bodyOf(subject, storedEvent, signal)
  if (body === undefined) {
    state.waitingSince = state.lastFailureAt = undefined
    onProgress({ cursor: seq, failing: undefined })
    return undefined
  }
  const attempt = await dispatcher.send({ url, credentials, id, body }, signal)
  const notedAttempt = { event_id: id, seq, type, ...fieldsOfAttempt(attempt) }
  if (attempt.outcome === 'delivered') {
    state.waitingSince = state.lastFailureAt = undefined
    history.note({ ...notedAttempt, status: 'delivered' })
    onProgress({ cursor: seq, failing: undefined })
    return undefined
  }

  // The time is not from `attempt.at`, because the wall clock may jump.
  const now = performance.now()
  const sinceLastMs = state.lastFailureAt === undefined ? undefined : now - state.lastFailureAt
  state.lastFailureAt = now
  const verdict = afterFailure(progress().failing, { ...attempt, sinceLastMs }, dispatcher.timing)
  const { failing } = verdict
  switch (verdict.next) {
    case 'wait': {
      const next_attempt_at = new Date(Date.now() + verdict.ms).toISOString()
      history.note({ ...notedAttempt, status: 'pending', next_attempt_at })
      onProgress({ ...progress(), failing })
      return verdict.ms
    }
    case 'skip':
      state.waitingSince = undefined
      history.note({ ...notedAttempt, status: 'failed' })
      onProgress({ cursor: seq, failing })
      return undefined
    case 'disable':
      history.note({ ...notedAttempt, status: 'pending' })
      onProgress({ ...progress(), failing })
      onDisable(verdict.reason)
      return 'over'
  }
}

/** Undefined if there is nothing to deliver. A body that cannot be made now cannot be made later: its event is skipped. */
async function bodyOf(
  { dispatcher, log, form, history, onError }: Delivering,
  storedEvent: StoredEvent,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (!form) return `{"conversation_id":"${log.conversationId}","event":${storedEvent.json}}`
  try {
    return await dispatcher.makeBody(log, form, storedEvent.seq)
  } catch (error) {
    // The log is being closed: the event is delivered when it is open again.
    if (signal.aborted || log.ended) throw error
    onError(error)
    const { id, type } = headerOf(storedEvent)
    const attempt = { at: new Date().toISOString(), duration_ms: 0, error: 'its body could not be made' }
    history.note({ event_id: id, seq: storedEvent.seq, type, ...attempt, status: 'failed' })
    return undefined
  }
}

export function fieldsOfAttempt({ at, durationMs, status, error }: Attempt) {
  return {
    at: new Date(at).toISOString(),
    duration_ms: durationMs,
    ...(status !== undefined && { response_status: status }),
    ...(error !== undefined && { error }),
  }
}
