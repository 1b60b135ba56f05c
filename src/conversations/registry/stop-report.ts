/** What the log says about a stop of the server that could not end everything. Each function returns true if nothing is left. */
import type { Logger } from '../../telemetry/logger.ts'

/** Conversations that one line names. */
const MAX_NAMED = 20

export function reportUnclosed(logger: Logger, ids: readonly string[]): boolean {
  if (ids.length === 0) return true
  logger.error(
    { count: ids.length, conversation_ids: ids.slice(0, MAX_NAMED) },
    'these conversations were not closed; the next start recovers them, and reports what was interrupted',
  )
  return false
}

export function reportLeftProcesses(logger: Logger, pids: readonly number[]): boolean {
  if (pids.length === 0) return true
  logger.error(
    { pids },
    'processes of conversations could not be ended: they wait in the kernel, for example for a file system that does not answer, and end when it does',
  )
  return false
}
