/**
 * What runs in a conversation, and its end. The only file that decides which processes a client may end: those that its
 * own shells have started, looked for anew each time and meant by pid and start time. A pid alone is nobody's.
 */
import type { EndedProcesses, Process } from '../../contract/command.ts'
import { Problem } from '../../contract/problem.ts'
import { endTrees } from '../../shell/processes/marked-processes.ts'
import { commandLineOf, startedAt, type ProcessEntry } from '../../shell/processes/process-table.ts'
import type { ShellProcess } from '../../shell/processes/shell-processes.ts'

export interface ConversationProcesses {
  /** Oldest first. */
  list(): Promise<Process[]>
  /** With all below it. Throws a `Problem` when the conversation has no such process. */
  end(pid: number): Promise<EndedProcesses>
  /** Those whose command line holds `pattern`, with all below them; there may be none. */
  endMatching(pattern: string): Promise<EndedProcesses>
}

export type ConversationProcessesDeps = {
  readonly find: () => Promise<ShellProcess[]>
  readonly ownerOf: (process: ProcessEntry) => string | undefined
  readonly redact: (text: string) => string
  /** For text that was cut off. */
  readonly redactCutOff: (text: string) => string
}

const MAX_COMMAND_LINE_CHARS = 4096

export function createConversationProcesses({
  find,
  ownerOf,
  redact,
  redactCutOff,
}: ConversationProcessesDeps): ConversationProcesses {
  const shown = (line: string) =>
    line.length > MAX_COMMAND_LINE_CHARS ? redactCutOff(line.slice(0, MAX_COMMAND_LINE_CHARS)) : redact(line)

  const tell = ({ entry, sessionId, commandId = ownerOf(entry) }: ShellProcess): Process => ({
    pid: entry.pid,
    ppid: entry.parentId,
    command_line: shown(commandLineOf(entry)),
    state: STATES[entry.state] ?? 'sleeping',
    started_at: new Date(startedAt(entry)).toISOString(),
    ...(sessionId !== undefined && { session_id: sessionId }),
    ...(commandId !== undefined && { command_id: commandId }),
  })

  const endAll = async (meant: readonly ShellProcess[], all: readonly ShellProcess[]): Promise<EndedProcesses> => {
    // Told as they were: of what is dead there is nothing left to read.
    const told = new Map(all.map((process) => [keyOf(process.entry), tell(process)]))
    const ended = await endTrees(meant.map(({ entry }) => entry))
    return { ended: ended.flatMap((entry) => told.get(keyOf(entry)) ?? tell({ entry, ...NOT_LISTED })) }
  }

  return {
    list: async () => (await find()).map(tell),
    async end(pid) {
      const all = await find()
      const meant = all.filter(({ entry }) => entry.pid === pid)
      if (meant.length > 0) return await endAll(meant, all)
      throw new Problem(
        'process_not_found',
        `The conversation has no process ${pid}: it has ended, or is none that was started here.`,
      )
    },
    async endMatching(pattern) {
      const all = await find()
      return await endAll(
        all.filter((process) => tell(process).command_line.includes(pattern)),
        all,
      )
    },
  }
}

/** Of what came to be while the others were ended. */
const NOT_LISTED = { sessionId: undefined, commandId: undefined }

const keyOf = ({ pid, startTime }: ProcessEntry) => `${pid} ${startTime}`

/** As proc(5) has them; others are rests between two of these. */
const STATES: Readonly<Record<string, Process['state']>> = {
  R: 'running',
  S: 'sleeping',
  I: 'sleeping',
  D: 'waiting',
  T: 'stopped',
  t: 'stopped',
}
