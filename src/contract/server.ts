/** What the server tells of itself. */
import { z } from 'zod'
import { ResourceLimits } from './resource-limits.ts'
import { ServerNetwork } from './network.ts'
import { Sandbox } from './sandbox.ts'

export const Alive = z.object({ status: z.literal('ok') }).meta({ id: 'Alive', examples: [{ status: 'ok' }] })

export const Readiness = z
  .object({
    status: z.enum(['ok', 'unavailable']),
    reason: z
      .enum(['starting', 'stopping', 'storage'])
      .optional()
      .describe('Why it is unavailable; `storage`: its data directory cannot be written.'),
  })
  .meta({ id: 'Readiness', examples: [{ status: 'ok' }, { status: 'unavailable', reason: 'stopping' }] })
export type Readiness = z.infer<typeof Readiness>

const Limit = z.int().positive()

export const Limits = z
  .object({
    max_body_bytes: Limit.describe('OPENHANDS_MAX_BODY_BYTES: of one request.'),
    max_upload_bytes: z.int().nonnegative().describe('OPENHANDS_MAX_UPLOAD_BYTES: of the files of one request.'),
    max_header_bytes: Limit.describe('Of the first line and the headers of one request.'),
    max_output_bytes: Limit.describe('OPENHANDS_MAX_OUTPUT_BYTES: what a result keeps of each stream of a command.'),
    stream_buffer_bytes: Limit.describe('OPENHANDS_STREAM_BUFFER_BYTES: what a stream’s reader may be behind.'),
    max_concurrent_runs: Limit.describe('OPENHANDS_MAX_CONCURRENT_RUNS: of all conversations; others are queued.'),
    max_streams_per_conversation: Limit.describe('OPENHANDS_MAX_STREAMS_PER_CONVERSATION: open at the same time.'),
    max_firehose_streams: Limit.describe('OPENHANDS_MAX_FIREHOSE_STREAMS: open at the same time.'),
    max_shell_sessions_per_conversation: Limit.describe('Shells that one conversation may have at the same time.'),
    max_running_commands_per_conversation: Limit.describe('Commands of clients that run or wait for their turn.'),
  })
  .meta({ id: 'Limits' })
export type Limits = z.infer<typeof Limits>

export const Info = z
  .object({
    name: z.literal('agent-server'),
    version: z.string(),
    tools: z.array(z.string()),
    isolation: z
      .enum(['bubblewrap', 'none'])
      .describe('What stands between the agent’s commands and the server; `none`: nothing.'),
    network: ServerNetwork,
    sandbox: Sandbox.optional().describe('Absent when there is none.'),
    limits: Limits,
    resource_limits: ResourceLimits,
  })
  .meta({
    id: 'Info',
    examples: [
      {
        name: 'agent-server',
        version: '0.1.0',
        tools: ['Bash', 'FileEditor', 'TaskTracker', 'Finish', 'Think'],
        isolation: 'bubblewrap',
        network: {
          default: { mode: 'open' },
          ceiling: { mode: 'open' },
          modes: ['none', 'allowlist', 'open'],
        },
        sandbox: { file_system: 'host_read_only', seccomp: true },
        limits: {
          max_body_bytes: 8_388_608,
          max_upload_bytes: 1_073_741_824,
          max_header_bytes: 16_384,
          max_output_bytes: 30_000,
          stream_buffer_bytes: 8_388_608,
          max_concurrent_runs: 256,
          max_streams_per_conversation: 500,
          max_firehose_streams: 100,
          max_shell_sessions_per_conversation: 16,
          max_running_commands_per_conversation: 16,
        },
        resource_limits: {
          memory_bytes: 8_589_934_592,
          processes: 2048,
          cpus: null,
          disk_bytes: null,
          enforced_by: { memory: 'cgroup_v2', processes: 'cgroup_v2', cpu: 'cgroup_v2', io: 'none', disk: 'none' },
        },
      },
    ],
  })
export type Info = z.infer<typeof Info>
