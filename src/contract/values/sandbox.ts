/** The description of a conversation's sandbox. */
import { z } from 'zod'

export const Sandbox = z
  .object({
    file_system: z
      .enum(['host_read_only', 'allow_list'])
      .describe(
        '`host_read_only`: the files of the host, except homes and files of the server. `allow_list`: only system files and the paths in OPENHANDS_SANDBOX_READABLE.',
      ),
    seccomp: z.boolean().describe('Whether system calls are filtered.'),
  })
  .meta({ id: 'Sandbox' })
export type Sandbox = z.infer<typeof Sandbox>
