/** Resource limits of a conversation: what a client may request, and what is in effect and how. */
import { z } from 'zod'

const MIB = 1024 * 1024
/** A shell does not start with less. */
const MIN_MEMORY_BYTES = 32 * MIB
const MIN_PROCESSES = 16
const MIN_CPUS = 0.05

export const RequestedLimits = z
  .strictObject({
    memory_bytes: z.int().min(MIN_MEMORY_BYTES).optional().describe('Memory of all processes together.'),
    processes: z.int().min(MIN_PROCESSES).optional().describe('Processes and threads at the same time.'),
    cpus: z.number().min(MIN_CPUS).optional().describe('Processor cores: 0.5 is half of one.'),
    disk_bytes: z.int().min(MIB).optional().describe('Workdir, outputs, home and temporary files together.'),
  })
  .describe('Limits within those of the server. Default: the limits of the server.')
  .meta({ id: 'RequestedLimits', examples: [{ memory_bytes: 1_073_741_824, processes: 200 }] })
export type RequestedLimits = z.infer<typeof RequestedLimits>

const Limit = z.number().positive().nullable()

/** `cgroup_v2` and `cgroup_v1`: enforced by the kernel. `watchdog`: the server checks, and ends what uses too much. */
const Bounding = z.enum(['cgroup_v2', 'cgroup_v1', 'watchdog', 'none'])
export type Bound = z.infer<typeof Bounding>

export const ResourceLimits = z
  .object({
    memory_bytes: Limit.describe('OPENHANDS_LIMIT_MEMORY; null: no limit.'),
    processes: Limit.describe('OPENHANDS_LIMIT_PROCESSES, threads included; null: no limit.'),
    cpus: Limit.describe('OPENHANDS_LIMIT_CPU, cores; null: no limit.'),
    disk_bytes: Limit.describe('OPENHANDS_LIMIT_DISK; null: no limit.'),
    enforced_by: z
      .object({
        memory: Bounding,
        processes: Bounding,
        cpu: z
          .enum(['cgroup_v2', 'cgroup_v1', 'priority'])
          .describe('`priority`: `cpus` has no effect; commands only have lower priority than the server.'),
        io: z
          .enum(['cgroup_v2', 'cgroup_v1', 'none'])
          .describe('Whether commands have lower disk priority than the server.'),
        disk: z.enum(['accounting', 'none']),
      })
      .describe(
        '`cgroup_v2`, `cgroup_v1`: enforced by the kernel. `watchdog`: the server measures periodically and ends processes over the limit. `none`: not enforced.',
      ),
  })
  .describe('Resource limits of the commands of one conversation.')
  .meta({
    id: 'ResourceLimits',
    examples: [
      {
        memory_bytes: 8_589_934_592,
        processes: 2048,
        cpus: null,
        disk_bytes: null,
        enforced_by: { memory: 'cgroup_v2', processes: 'cgroup_v2', cpu: 'cgroup_v2', io: 'none', disk: 'none' },
      },
    ],
  })
export type ResourceLimits = z.infer<typeof ResourceLimits>
