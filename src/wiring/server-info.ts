/** Information about the server: `GET /info` and the number of conversations by status. */
import type { Config } from '../config/config.ts'
import { Status } from '../contract/events/status.ts'
import type { Info } from '../contract/server.ts'
import { DEFAULT_COMMAND_LIMITS } from '../workspace/exec/command-limits.ts'
import type { ConversationManager } from '../conversations/manager.ts'
import { MAX_HEADER_BYTES } from '../http/guards/client-error.ts'
import type { ResourceLimiter } from '../limits/resource-limits.ts'
import type { ShellLauncher } from '../sandbox/launch.ts'
import { MAX_SHELL_SESSIONS } from '../shell/shell-limits.ts'
import { TOOL_NAMES } from '../tools/registry.ts'
import { missingTools } from './tools.ts'
import { serverNetwork } from './sandbox.ts'
import { VERSION } from './version.ts'

export function infoOf(config: Config, launcher: ShellLauncher, resources: ResourceLimiter): Info {
  return {
    name: 'agent-server',
    version: VERSION,
    tools: TOOL_NAMES.filter((name) => !missingTools(config).has(name)),
    isolation: launcher.isolation,
    ...(launcher.sandbox && { sandbox: launcher.sandbox }),
    network: serverNetwork(config, launcher),
    limits: {
      max_body_bytes: config.maxBodyBytes,
      max_upload_bytes: config.maxUploadBytes,
      max_header_bytes: MAX_HEADER_BYTES,
      max_output_bytes: config.maxOutputBytes,
      stream_buffer_bytes: config.streamBufferBytes,
      max_concurrent_runs: config.maxConcurrentRuns,
      max_streams_per_conversation: config.maxStreamsPerConversation,
      max_firehose_streams: config.maxFirehoseStreams,
      max_shell_sessions_per_conversation: MAX_SHELL_SESSIONS,
      max_running_commands_per_conversation: DEFAULT_COMMAND_LIMITS.running,
    },
    resource_limits: resources.inForce(),
  }
}

/** Includes statuses without conversations: a metric that disappears is hard to monitor. */
export function countByStatus(manager: ConversationManager): Record<string, number> {
  return Object.fromEntries(
    Status.options.map((status) => [status, manager.count({ status: new Set([status]) }).count]),
  )
}
