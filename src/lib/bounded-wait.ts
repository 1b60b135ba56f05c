/** Limits waits by a time or a signal. */
import { setTimeout as delay } from 'node:timers/promises'

/** A limit is waited for in so many parts, of which as many may be late. */
const PARTS = 4

/** The longest timer, in milliseconds: about 25 days. Node sets longer ones to a millisecond. */
export const MAX_TIMER_MS = 2 ** 31 - 1

/** Returns the duration of a timer for any number: a computed one may be negative, not a number, or too long. */
export const timerMs = (ms: number): number => Math.min(Math.max(ms || 0, 0), MAX_TIMER_MS)

/** Is never aborted. */
export const NEVER: AbortSignal = new AbortController().signal

/**
 * The signal that the work receives is aborted with the reason of `signal`, or with a `TimeoutError`. `AbortSignal.any`
 * with `AbortSignal.timeout` does the same, but keeps both until the time is over: 2 kB each, ten times as slow.
 */
export async function withinTime<T>(
  ms: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted()
  const controller = new AbortController()
  const onAbort = () => controller.abort(signal.reason)
  const end = () => controller.abort(new DOMException('It took too long.', 'TimeoutError'))
  const cancel = afterRunning(ms, end)
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await work(controller.signal)
  } finally {
    cancel()
    signal.removeEventListener('abort', onAbort)
  }
}

/**
 * Calls `end` when this process has run for so many milliseconds, and has read what arrived by then. A part of the time that
 * ends much too late does not count: the process was stopped, or the machine suspended, and could do nothing of what is waited
 * for. Returns an idempotent function that cancels the call.
 */
export function afterRunning(ms: number, end: () => void): () => void {
  const partMs = ms / PARTS
  let [timer, punctual, late]: [NodeJS.Timeout | undefined, number, number] = [undefined, 0, 0]
  const wait = () => {
    const dueAt = performance.now() + partMs
    timer = setTimeout(() => {
      if (performance.now() - dueAt > partMs && late < PARTS) late++
      else punctual++
      if (punctual < PARTS) wait()
      else afterRead(() => timer && end())
    }, timerMs(partMs))
  }
  wait()
  return () => {
    clearTimeout(timer)
    timer = undefined
  }
}

/**
 * Calls `end` after the data that has already arrived was read. Timers come first in the event loop: when the whole
 * process was stopped for a while, finished work would otherwise count as late.
 */
export function afterRead(end: () => void): void {
  setImmediate(end)
}

/**
 * Bounds work that may ignore its signal. Settles as the work does, or rejects with the signal's reason as soon as that
 * is aborted. A later result of the work goes to `discard`; a later error is ignored.
 */
export async function orAborted<T>(
  work: Promise<T>,
  signal: AbortSignal,
  discard: (late: T) => void = () => {},
): Promise<T> {
  const abortion = Promise.withResolvers<never>()
  const onAbort = () => abortion.reject(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  if (signal.aborted) onAbort()
  let isOver = false
  work.then(
    (result) => isOver && discard(result),
    () => {}, // handled by the race, or irrelevant by now
  )
  try {
    return await Promise.race([work, abortion.promise])
  } finally {
    isOver = true
    signal.removeEventListener('abort', onAbort)
  }
}

/**
 * Ends only the wait. Returns true if the promise resolves while this process runs for so many milliseconds; rejects if
 * it rejects by then.
 */
export async function settlesWithin(ms: number, promise: Promise<unknown>): Promise<boolean> {
  const tooLate = Promise.withResolvers<boolean>()
  const cancel = afterRunning(ms, () => tooLate.resolve(false))
  return Promise.race([promise.then(() => true), tooLate.promise]).finally(cancel)
}

/** Resolves after so many milliseconds, or as soon as the signal is aborted. The process does not stay alive for it. */
export async function sleepUnlessAborted(ms: number, signal: AbortSignal): Promise<void> {
  await delay(timerMs(ms), undefined, { signal, ref: false }).catch(() => {}) // it was aborted
}

/** Resolves when the signal is aborted. */
export const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise<void>((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
