/** How a client's command stands, and why the server ended it where it did. */
import { z } from 'zod'

export const CommandStatus = z
  .enum(['queued', 'running', 'exited', 'timed_out', 'killed', 'failed', 'lost'])
  .describe(
    '`queued` behind another command of its session; `exited`: it came to its own end; `killed`: the server ended it, and `killed_by` says why; `failed`: no shell could be started; `lost`: the server was killed meanwhile, and how the command ended is not known. `timed_out` is what earlier versions wrote for `killed` by its `timeout`.',
  )
  .meta({ id: 'CommandStatus' })
export type CommandStatus = z.infer<typeof CommandStatus>

export const KilledBy = z
  .enum(['timeout', 'output_limit', 'request'])
  .describe(
    'Of a command that is `killed`: its `timeout` was over; it wrote more than is kept of an output stream; or somebody asked for it: a client that ended the command or went away, or the end of its session, of the conversation or of the server.',
  )
  .meta({ id: 'KilledBy' })
export type KilledBy = z.infer<typeof KilledBy>
