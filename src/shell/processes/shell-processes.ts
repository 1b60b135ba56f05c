/**
 * Lists the processes of a conversation: everything its shells started, including processes that left their trees, but
 * not the shells of its sessions.
 */
import type { BashProcess } from '../bash-process.ts'
import { findMarkedProcesses, isProgramId } from './marked-processes.ts'
import type { ProcessEntry } from './process-table.ts'

export type ShellProcess = {
  readonly entry: ProcessEntry
  /** Undefined for a shell of a single command. */
  readonly sessionId: string | undefined
  readonly commandId: string | undefined
}

/** A running shell. `commandId`: it belongs to that command alone. */
export type RunningShell = {
  readonly sessionId: string
  readonly commandId: string | undefined
  readonly bash: BashProcess
}

export type ShellProcessesOptions = {
  readonly conversationId: string
  readonly stateDir: string
  readonly shells: readonly RunningShell[]
}

/** Oldest first. */
export async function listShellProcesses({
  conversationId,
  stateDir,
  shells,
}: ShellProcessesOptions): Promise<ShellProcess[]> {
  const foundProcesses = new Map<number, ShellProcess>()
  const add = (process: ShellProcess) => foundProcesses.set(process.entry.pid, process)
  // Search by process trees first: a program may have been started without our mark.
  for (const { sessionId, commandId, bash } of shells)
    for (const entry of bash.descendants())
      add({ entry, sessionId: commandId === undefined ? sessionId : undefined, commandId })
  for (const { entry, sessionId, commandId } of await findMarkedProcesses(conversationId, stateDir)) {
    if (isProgramId(sessionId)) continue
    const ofOne = commandIdOf(sessionId)
    add({ entry, sessionId: ofOne === undefined ? sessionId : undefined, commandId: commandId ?? ofOne })
  }
  for (const { bash } of shells) for (const pid of bash.ownPids) foundProcesses.delete(pid)
  for (const shell of shells) if (shell.commandId !== undefined) addShell(shell, add)
  return [...foundProcesses.values()]
    .filter(({ entry }) => !entry.isZombie && entry.pid !== process.pid)
    .sort((a, b) => Number(a.entry.startTime) - Number(b.entry.startTime) || a.entry.pid - b.entry.pid)
}

/** The shell of a background command belongs to the command. */
function addShell({ commandId, bash }: RunningShell, add: (process: ShellProcess) => void): void {
  if (bash.entry) add({ entry: bash.entry, sessionId: undefined, commandId })
}

/** Distinguishes the id of a single command's shell from all possible session ids. */
const FORK_PREFIX = '@'

export const forkIdOf = (commandId: string): string => FORK_PREFIX + commandId

export const commandIdOf = (sessionId: string): string | undefined =>
  sessionId.startsWith(FORK_PREFIX) ? sessionId.slice(FORK_PREFIX.length) : undefined
