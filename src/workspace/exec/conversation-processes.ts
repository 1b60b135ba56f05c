/**
 * Lists and ends the processes of a conversation. The only file that decides which processes a client may end: those
 * started by its own shells, looked up again for each request and identified by pid and start time. A pid alone
 * identifies nothing, because pids are reused.
 */
import type { EndedProcesses, Process } from '../../contract/values/command.ts'
import { Problem } from '../../contract/problem.ts'
import { endTrees } from '../../shell/processes/marked-processes.ts'
import { commandLineOf, startedAt, type ProcessEntry } from '../../shell/processes/process-table.ts'
import type { ShellProcess } from '../../shell/processes/shell-processes.ts'
import { processKey } from '../../shell/processes/process-table.ts'

export type ConversationProcessesDeps = {
  readonly find: () => Promise<ShellProcess[]>
  readonly ownerOf: (process: ProcessEntry) => string | undefined
  readonly redact: (text: string) => string
  /** Redacts text that may have been truncated. */
  readonly redactCutOff: (text: string) => string
}

const MAX_COMMAND_LINE_CHARS = 4096

export class ConversationProcesses {
  readonly #deps: ConversationProcessesDeps

  constructor(deps: ConversationProcessesDeps) {
    this.#deps = deps
  }

  /** Oldest first. */
  async list(): Promise<Process[]> {
    return this.show(await this.#deps.find())
  }

  show(processes: readonly ShellProcess[]): Process[] {
    return processes.map((process) => this.#view(process))
  }

  /** The command lines of the given ones. */
  commandLines(processes: readonly ShellProcess[]): string[] {
    return this.show(processes).map((each) => each.command_line)
  }

  /** Ends a process and its descendants. Throws a `Problem` if the conversation has no such process. */
  async end(pid: number): Promise<EndedProcesses> {
    const all = await this.#deps.find()
    const meantProcesses = all.filter(({ entry }) => entry.pid === pid)
    if (meantProcesses.length > 0) return await this.#endAll(meantProcesses, all)
    throw new Problem(
      'process_not_found',
      `The conversation has no process ${pid}: it has ended, or was not started here.`,
    )
  }

  /** Ends the processes whose command line contains `pattern`, with their descendants; there may be none. */
  async endMatching(pattern: string): Promise<EndedProcesses> {
    const all = await this.#deps.find()
    const meantProcesses = all.filter((process) => this.#view(process).command_line.includes(pattern))
    return await this.#endAll(meantProcesses, all)
  }

  async #endAll(meantProcesses: readonly ShellProcess[], all: readonly ShellProcess[]): Promise<EndedProcesses> {
    // Read the details first: a dead process has none.
    const views = new Map(all.map((process) => [processKey(process.entry), this.#view(process)]))
    const endedProcesses = await endTrees(meantProcesses.map(({ entry }) => entry))
    return {
      ended: endedProcesses.flatMap((entry) => views.get(processKey(entry)) ?? this.#view({ entry, ...NOT_LISTED })),
    }
  }

  #view({ entry, sessionId, commandId = this.#deps.ownerOf(entry) }: ShellProcess): Process {
    return {
      pid: entry.pid,
      ppid: entry.parentId,
      command_line: this.#redacted(commandLineOf(entry)),
      state: STATES[entry.state] ?? 'sleeping',
      started_at: new Date(startedAt(entry)).toISOString(),
      ...(sessionId !== undefined && { session_id: sessionId }),
      ...(commandId !== undefined && { command_id: commandId }),
    }
  }

  #redacted(line: string): string {
    const { redact, redactCutOff } = this.#deps
    return line.length > MAX_COMMAND_LINE_CHARS ? redactCutOff(line.slice(0, MAX_COMMAND_LINE_CHARS)) : redact(line)
  }
}

/** The marks of processes that started while the others were being ended. */
const NOT_LISTED = { sessionId: undefined, commandId: undefined }

/** The states of proc(5); any other is an idle state between two of these. */
const STATES: Readonly<Record<string, Process['state']>> = {
  R: 'running',
  S: 'sleeping',
  I: 'sleeping',
  D: 'waiting',
  T: 'stopped',
  t: 'stopped',
}
