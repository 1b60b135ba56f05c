/**
 * Finds and ends the processes of a conversation by a mark in their environment: those that left the shell's process
 * tree (`setsid`, daemons) keep it. Exact only behind a wall with a PID namespace: a process can start without it.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { findByEnvironment, signalProcess, type ProcessEntry } from './process-table.ts'

const MARK = 'AGENT_SERVER_SHELL'
const MAX_ROUNDS = 200
const ROUND_MS = 5
/** One look can miss a process: while it executes a program it has no environment, and its child may be too new. */
const EMPTY_ROUNDS = 3

/** The variable that every process of a shell session is started with. */
export function shellMark(conversationId: string, sessionId: string): Record<string, string> {
  return { [MARK]: `${conversationId}/${sessionId}` }
}

/** Ends all processes of a session, or of the whole conversation; resolves when none is left. */
export async function endMarkedProcesses(conversationId: string, sessionId?: string): Promise<void> {
  const entry = `${MARK}=${conversationId}/${sessionId ?? ''}`
  for (let round = 0, empty = 0; round < MAX_ROUNDS && empty < EMPTY_ROUNDS; round++) {
    const frozen = await freezeAll(() => findByEnvironment(entry, { prefix: sessionId === undefined }))
    empty = frozen.length === 0 ? empty + 1 : 0
    for (const process of frozen) signalProcess(process, 'SIGKILL')
    await delay(ROUND_MS)
  }
}

/** Stops all before any is killed: else one could start another while its parent dies, for as long as it is quicker. */
async function freezeAll(find: () => Promise<ProcessEntry[]>): Promise<ProcessEntry[]> {
  const frozen = new Map<string, ProcessEntry>()
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const found = (await find()).map((process) => [`${process.pid} ${process.startTime}`, process] as const)
    const running = found.filter(([key]) => !frozen.has(key))
    if (running.length === 0) break
    for (const [key, process] of running) {
      signalProcess(process, 'SIGSTOP')
      frozen.set(key, process)
    }
  }
  return [...frozen.values()]
}
