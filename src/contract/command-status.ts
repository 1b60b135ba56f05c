/** How a client's command stands. */
import { z } from 'zod'

export const CommandStatus = z
  .enum(['queued', 'running', 'exited', 'timed_out', 'killed', 'failed', 'lost'])
  .describe(
    '`queued` behind another command of its session; `killed` by a client, or as its session or the server ended; `failed`: no shell could be started; `lost`: the server was killed meanwhile, and how the command ended is not known.',
  )
  .meta({ id: 'CommandStatus' })
export type CommandStatus = z.infer<typeof CommandStatus>
