/** How the command of a task is run: as a client's own, in the background, so that it is listed, followed and ended like those. */
import { RunCommand } from '../../contract/command.ts'
import type { ClientCommands } from '../exec/client-commands.ts'
import type { RunTaskCommand } from './background-jobs.ts'

/** A session that nobody works in: each command begins in the workdir, with nothing that another has left. */
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
    const killed = killed_by === undefined ? {} : { killed_by }
    const what = { stdout, stderr, cwd, execution_time, timed_out, ...killed, truncated }
    // One that was ended has nothing to say of its own.
    return { type: 'Command', exit_code: status === 'exited' ? exit_code : null, ...what }
  }
}
