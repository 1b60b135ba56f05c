/** The server on the wire: health, version, limits and what it does now. */
import { z } from 'zod'
import { ResourceLimits } from './limits/resource-limits.ts'
import { ServerNetwork } from './values/network.ts'
import { Sandbox } from './values/sandbox.ts'

export const Alive = z.object({ status: z.literal('ok') }).meta({ id: 'Alive', examples: [{ status: 'ok' }] })

export const Readiness = z
  .object({
    status: z.enum(['ok', 'unavailable']),
    reason: z
      .enum(['starting', 'stopping', 'storage'])
      .optional()
      .describe(
        'Why the server is unavailable. `storage`: the data directory cannot be written, or the database does not answer.',
      ),
  })
  .meta({ id: 'Readiness', examples: [{ status: 'ok' }, { status: 'unavailable', reason: 'stopping' }] })
export type Readiness = z.infer<typeof Readiness>

const Limit = z.int().positive()

const Limits = z
  .object({
    max_body_bytes: Limit.describe('OPENHANDS_MAX_BODY_BYTES: size of one request body.'),
    max_upload_bytes: z.int().nonnegative().describe('OPENHANDS_MAX_UPLOAD_BYTES: size of the files of one request.'),
    max_header_bytes: Limit.describe('Size of the request line and the headers of one request.'),
    max_output_bytes: Limit.describe('OPENHANDS_MAX_OUTPUT_BYTES: size of the output per stream that a result keeps.'),
    stream_buffer_bytes: Limit.describe('OPENHANDS_STREAM_BUFFER_BYTES: how far a reader of a stream may be behind.'),
    max_concurrent_runs: Limit.describe(
      'OPENHANDS_MAX_CONCURRENT_RUNS: active runs of all conversations. Further runs are queued.',
    ),
    max_streams_per_conversation: Limit.describe(
      'OPENHANDS_MAX_STREAMS_PER_CONVERSATION: streams of one conversation at the same time.',
    ),
    max_firehose_streams: Limit.describe('OPENHANDS_MAX_FIREHOSE_STREAMS: streams of the firehose at the same time.'),
    max_shell_sessions_per_conversation: Limit.describe('Shells of one conversation at the same time.'),
    max_running_commands_per_conversation: Limit.describe('Running and queued commands of clients.'),
  })
  .meta({ id: 'Limits' })
type Limits = z.infer<typeof Limits>

export const Info = z
  .object({
    name: z.literal('agent-server'),
    version: z.string(),
    tools: z.array(z.string()),
    isolation: z.enum(['bubblewrap', 'none']).describe('Sandbox around commands. `none`: no sandbox.'),
    network: ServerNetwork,
    sandbox: Sandbox.optional().describe('Absent without a sandbox.'),
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

const Now = z.int().nonnegative()

export const ServerActivity = z
  .object({
    active_runs: Now.describe('Runs that work.'),
    queued_runs: Now.describe('Runs that wait because `max_concurrent_runs` other runs are active.'),
    streams: z
      .object({ sse: Now.describe('Event streams.'), websocket: Now.describe('Open sockets.') })
      .describe('Streams of all clients.'),
  })
  .meta({
    id: 'ServerActivity',
    examples: [{ active_runs: 3, queued_runs: 0, streams: { sse: 1, websocket: 2 } }],
  })
export type ServerActivity = z.infer<typeof ServerActivity>
