/**
 * Finds and ends the processes of a conversation by a mark in their environment: those that left the shell's process
 * tree (`setsid`, daemons) keep it. Exact only behind a wall with a PID namespace: a process can start without it.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { findByEnvironment, signalProcess, type ProcessEntry } from './process-table.ts'

const MARK = 'AGENT_SERVER_SHELL'
const MAX_ROUNDS = 200
const ROUND_MS = 5

/** The variable that every process of a shell session is started with. */
export function shellMark(conversationId: string, sessionId: string): Record<string, string> {
  return { [MARK]: `${conversationId}/${sessionId}` }
}

/** Ends all processes of a session, or of the whole conversation; resolves when none is left. */
export async function endMarkedProcesses(conversationId: string, sessionId?: string): Promise<void> {
  const entry = `${MARK}=${conversationId}/${sessionId ?? ''}`
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const found = await findByEnvironment(entry, { prefix: sessionId === undefined })
    if (found.length === 0) return
    await endFrozen(found)
    await delay(ROUND_MS)
  }
}

/** All are stopped before the first is killed, so that none can start another while its parent dies. */
async function endFrozen(processes: readonly ProcessEntry[]): Promise<void> {
  for (const process of processes) signalProcess(process, 'SIGSTOP')
  for (const process of processes) signalProcess(process, 'SIGKILL')
}
