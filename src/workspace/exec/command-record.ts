/** The stored record of a client's command, and the views of it in responses. Pure. */
import { z } from 'zod'
import type { CommandOutcome, CommandStarted, KilledBy } from '../../contract/values/command.ts'
import { Command } from '../../contract/values/command.ts'
import type { EventDraft } from '../../contract/events/event.ts'
import type { ShellResult } from '../../shell/shell.ts'

export const CommandRecord = Command.omit({ id: true }).extend({
  command_id: Command.shape.id,
  /** The shortened output of the response. */
  stdout: z.string(),
  stderr: z.string(),
  /** The idempotency key of its request. */
  idempotency: z.object({ key: z.string(), bodyHash: z.string() }).optional(),
})
export type CommandRecord = z.infer<typeof CommandRecord>

/** Returns why the server ended a command; undefined if it ended by itself. */
function killerOf({ timedOut, flooded, interrupted }: ShellResult): KilledBy | undefined {
  if (timedOut) return 'timeout'
  if (flooded) return 'output_limit'
  return interrupted ? 'request' : undefined
}

export function endedRecord(record: CommandRecord, result: ShellResult, redact: (text: string) => string) {
  const killed_by = killerOf(result)
  return {
    ...record,
    status: killed_by === undefined ? 'exited' : 'killed',
    ...(killed_by !== undefined && { killed_by }),
    ended_at: new Date().toISOString(),
    exit_code: result.exitCode,
    execution_time: Math.round(result.durationMs * 1000) / 1e6,
    cwd: redact(result.cwd),
    stdout: redact(result.stdout),
    stderr: redact(result.stderr),
    truncated: result.truncated,
    timed_out: result.timedOut,
    ...(result.backgroundHostPid !== undefined && { background_pid: result.backgroundHostPid }),
    ...(result.note !== undefined && { note: redact(result.note) }),
  } satisfies CommandRecord
}

/** Returns the record of a command for which there was no shell. */
export function failedRecord(record: CommandRecord, cwd: string, note: string): CommandRecord {
  return { ...record, status: 'failed', ended_at: new Date().toISOString(), execution_time: 0, cwd, note }
}

export const isOver = ({ status }: CommandRecord): boolean => status !== 'queued' && status !== 'running'

/** Returns the record as lost if it says that the command continues: call it when no process of this server executes it. */
export function asLost(record: CommandRecord): CommandRecord {
  if (isOver(record)) return record
  const note =
    'The server and the processes of the command were killed while the command ran; its effects until then remain.'
  return { ...record, status: 'lost', note }
}

/** Returns the record without output and idempotency key. */
export const viewOf = (record: CommandRecord): Command => Command.parse({ ...record, id: record.command_id })

export function outcomeOf(record: CommandRecord): CommandOutcome {
  const { command_id, status, exit_code, stdout, stderr, truncated, timed_out, killed_by, background_pid, note } =
    record
  return {
    command_id,
    status,
    exit_code,
    stdout,
    stderr,
    execution_time: record.execution_time ?? 0,
    cwd: record.cwd ?? '',
    ...(background_pid !== undefined && { background_pid }),
    truncated,
    timed_out,
    ...(killed_by !== undefined && { killed_by }),
    ...(note !== undefined && { note }),
  }
}

/** The same whenever it is asked for, once it has started. */
export function startedOf({ command_id, status, started_at, pid }: CommandRecord): CommandStarted {
  if (started_at === undefined) return { command_id, status }
  return { command_id, status: 'running', ...(pid !== undefined && { pid }) }
}

export function eventOf(record: CommandRecord): EventDraft {
  const { command_id, command, session_id, status, exit_code, killed_by, background_pid } = record
  return {
    type: 'CommandResult',
    source: 'environment',
    command_id,
    command,
    session_id,
    status,
    ...(killed_by !== undefined && { killed_by }),
    exit_code,
    cwd: record.cwd ?? '',
    execution_time: record.execution_time ?? 0,
    ...(background_pid !== undefined && { background_pid }),
  }
}
