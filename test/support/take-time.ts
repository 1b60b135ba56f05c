/**
 * Time that a party of a test takes: a slow tool, disk or reader, or a pause of random length. It makes different orders
 * of things likely. What a test needs to have happened it waits for: see `until.ts`.
 */
import { setTimeout as sleep } from 'node:timers/promises'

/** A longer time would be a wait, which a test has no use for. */
const MOST_MS = 5000

/** Resolves when the time is over or the signal aborts. */
export async function takeTime(ms: number, signal?: AbortSignal): Promise<void> {
  if (ms > MOST_MS) throw new Error(`Nobody takes ${ms} ms in a test. Wait for a condition instead.`)
  // oxlint-disable-next-line tests/sleep -- no assertion depends on the length
  await sleep(ms, undefined, { ...(signal && { signal }) }).catch(() => {}) // it was interrupted
}

/** Keeps this thread busy. */
export function keepBusy(ms: number): void {
  // oxlint-disable-next-line tests/elapsed -- as above
  for (const start = performance.now(); performance.now() - start < ms;);
}
