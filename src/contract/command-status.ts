/** How a client's command stands, and why the server ended it where it did. */
import { z } from 'zod'

export const CommandStatus = z
  .enum(['queued', 'running', 'exited', 'timed_out', 'killed', 'failed', 'lost'])
  .describe(
    '`queued`: waits for another command of its session. `exited`: ended by itself. `killed`: the server ended it, and `killed_by` says why. `failed`: no shell could be started. `lost`: the server was killed while it ran, and its outcome is unknown. Earlier versions wrote `timed_out` for a command that its `timeout` ended.',
  )
  .meta({ id: 'CommandStatus' })
export type CommandStatus = z.infer<typeof CommandStatus>

export const KilledBy = z
  .enum(['timeout', 'output_limit', 'request'])
  .describe(
    'Why the command was `killed`. `timeout`: it timed out. `output_limit`: it wrote more than is kept of an output stream. `request`: a client ended it or disconnected, or its session, its conversation or the server ended.',
  )
  .meta({ id: 'KilledBy' })
export type KilledBy = z.infer<typeof KilledBy>
