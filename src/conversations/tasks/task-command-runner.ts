/** Runs the command of a task like a client's background command, so that clients can list, follow and end it. */
import { RunCommand } from '../../contract/values/command.ts'
import type { ClientCommands } from '../../workspace/exec/client-commands.ts'
import type { RunTaskCommand } from './background-jobs.ts'

/** A session that nothing else uses: each command begins in the workdir, with no state of earlier ones. */
const FRESH_SESSION = 'task'

export function createRunTaskCommand(commands: Pick<ClientCommands, 'run' | 'end'>): RunTaskCommand {
  return async (command, { timeout, signal }) => {
    const how = { session_id: FRESH_SESSION, background: true, keep_stdin_open: false }
    let id: string | undefined
    const onId = (commandId: string) => (id = commandId)
    const outcome = await commands.run(RunCommand.parse({ command, timeout, ...how }), { signal, onId })
    // The interrupt ends what the shell waits for; a process that began in that moment, or ignores it, is left.
    if (signal.aborted && id !== undefined) await commands.end(id)
    const { status, exit_code, stdout, stderr, cwd, execution_time, timed_out, killed_by, truncated } = outcome
    const killer = killed_by === undefined ? {} : { killed_by }
    const what = { stdout, stderr, cwd, execution_time, timed_out, ...killer, truncated }
    // A command that was ended has no result.
    return { type: 'Command', exit_code: status === 'exited' ? exit_code : null, ...what }
  }
}
