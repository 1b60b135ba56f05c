/** What the server tells of itself. */
import { z } from 'zod'

export const Alive = z.object({ status: z.enum(['ok', 'unavailable']) }).meta({ id: 'Alive' })

export const Info = z
  .object({
    name: z.literal('agent-server'),
    version: z.string(),
    tools: z.array(z.string()),
    isolation: z
      .enum(['bubblewrap', 'none'])
      .describe('What stands between the agent’s commands and the server; `none`: nothing.'),
    limits: z.object({
      max_body_bytes: z.int(),
      max_upload_bytes: z.int(),
      max_output_bytes: z.int(),
      stream_buffer_bytes: z.int(),
    }),
  })
  .meta({ id: 'Info' })
export type Info = z.infer<typeof Info>
