/** The events of a conversation and its clients: messages, status, configuration, files, commands and tasks. */
import { z } from 'zod'
import { CommandStatus, KilledBy } from '../values/command.ts'
import { Usage, UserPart } from '../values/message.ts'
import { RunSampling, ToolChoice } from '../values/llm-config.ts'
import { PermissionMode } from '../values/permission.ts'
import { ResourceLimits } from '../limits/resource-limits.ts'
import { NetworkPolicy, NetworkTarget } from '../values/network.ts'
import { Runnable, TaskProgress, TaskResult, TaskStatus } from '../values/task.ts'
import { ProjectSettings } from '../project/project-settings.ts'
import { Sandbox } from '../values/sandbox.ts'
import { AuthorizationUrl, McpStatus } from '../mcp/mcp-status.ts'
import { byEnvironment, byUser, Envelope, InRun, KeyFields } from './envelope.ts'
import { ForkedFiles } from './forked-files.ts'
import { Status } from './status.ts'

export const SystemInit = Envelope.extend({
  ...byEnvironment,
  type: z.literal('SystemInit'),
  session_id: z.uuid().describe('The id of the conversation.'),
  cwd: z.string(),
  sdk_version: z.string(),
  options_summary: z
    .record(z.string(), z.unknown())
    .describe('The request that created the conversation; secret values are masked.'),
  enabled_tools: z.array(z.string()),
  enabled_providers: z.array(z.string()),
  mcp_servers: z.array(z.object({ name: z.string(), status: z.string() })),
  agents: z.array(z.string()).optional().describe('Names of the agents that the tool `Task` has. Absent without it.'),
  system_prompt: z.string(),
  isolation: z.enum(['bubblewrap', 'none']),
  resource_limits: ResourceLimits.optional().describe('Absent in logs of older versions.'),
  network: NetworkPolicy.optional().describe('Network policy at that time. A `ConfigUpdate` can change it.'),
  project_settings: ProjectSettings.optional().describe('Absent if the conversation has no setting_sources.'),
  sandbox: Sandbox.optional().describe('Absent without one, and in events of older versions.'),
}).meta({ id: 'SystemInit' })

export const UserMessage = Envelope.extend({
  ...byUser,
  run_id: z.uuid().optional().describe('The run that it started, or that reads it.'),
  type: z.literal('UserMessage'),
  content: z.array(UserPart),
  run: z.boolean().describe('Whether it requested a run. A run does not end before it has read such a message.'),
  sender: z.string().optional(),
  slash_command: z
    .object({ name: z.string(), text: z.string() })
    .optional()
    .describe('The slash command that the message begins with. The agent reads `text` in place of the first part.'),
  task_id: z.uuid().optional().describe('The task that it starts.'),
  context: z.string().optional().describe('What hooks added for the model, which reads it after the message.'),
  client_message_id: z.string().optional().describe('The id that the client gave it.'),
  ...KeyFields,
}).meta({ id: 'UserMessage' })

export const MessageWithdrawn = Envelope.extend({
  ...byUser,
  type: z.literal('MessageWithdrawn'),
  message_seq: z.int().positive().describe('The `UserMessage` that was withdrawn, by seq.'),
  run_requested_at: z
    .int()
    .positive()
    .optional()
    .describe('The seq of the newest other message that waits and asks for a run. Absent if no other message does.'),
})
  .meta({ id: 'MessageWithdrawn' })
  .describe('A client took a message back before the agent had read it. No model request has it from here on.')

export const WorkspaceSnapshot = Envelope.extend({
  ...byEnvironment,
  ...InRun,
  type: z.literal('WorkspaceSnapshot'),
  snapshot_id: z.uuid(),
  as_of_seq: z
    .int()
    .nonnegative()
    .describe('The files are as they were after this event, and up to that of the next snapshot.'),
  left_out: z
    .array(
      z.object({
        path: z.string().describe('Relative to the workdir, or absolute in an additional directory.'),
        reason: z
          .enum(['ignored', 'too_large', 'unreadable', 'special', 'hidden'])
          .describe(
            '`ignored`: by a `.gitignore`. `too_large`: more than 10 MB. `special`: a pipe, a socket or a device. `hidden`: it belongs to the server.',
          ),
      }),
    )
    .describe('Paths that it does not contain, with everything below. The first 100.'),
  left_out_count: z.int().positive().optional().describe('Of all of them, if there are more than 100.'),
  head_commit: z
    .string()
    .optional()
    .describe('The commit of HEAD then, if the workdir is the top of a git repository with a commit.'),
})
  .meta({ id: 'WorkspaceSnapshot' })
  .describe('The files of the workdir were kept, because they have changed: see `file_checkpointing`.')

export const StatusUpdate = Envelope.extend({
  ...byEnvironment,
  ...InRun,
  type: z.literal('StatusUpdate'),
  status: Status,
  previous_status: Status,
  reason: z
    .string()
    .describe(
      'Reason of the update. `queued` and `dequeued` do not change the status `running`: the run waits for a slot, and then has one.',
    ),
  max_steps: z.int().positive().optional().describe('Number of model answers after which this run pauses.'),
  output_schema: z.record(z.string(), z.unknown()).optional().describe('JSON Schema of the final answer of this run.'),
  tool_choice: ToolChoice.optional().describe('For the first model answer of this run.'),
  model: z.string().optional().describe('The model of this run, instead of that of the conversation.'),
  permission_mode: PermissionMode.optional().describe('The mode of this run, instead of that of the conversation.'),
  allowed_tools: z.array(z.string()).optional().describe('More `allow` rules, for this run.'),
  instructions: z.string().optional().describe('Follow the system prompt in this run.'),
  ...RunSampling.shape,
}).meta({ id: 'StatusUpdate' })

export const ConfigUpdate = Envelope.extend({
  source: z
    .enum(['user', 'environment'])
    .describe(
      '`environment`: the server has generated a title, or found the workdir where the data directory was moved.',
    ),
  type: z.literal('ConfigUpdate'),
  changes: z.record(z.string(), z.unknown()).describe('The changed fields; secret values are masked.'),
  model: z.string().optional().describe('The model that wrote the title.'),
  usage: Usage.optional().describe('Tokens that the title took.'),
  cost_usd: z.number().nonnegative().optional(),
}).meta({ id: 'ConfigUpdate' })

export const SecretsUpdate = Envelope.extend({
  ...byUser,
  type: z.literal('SecretsUpdate'),
  added: z.array(z.string()).describe('Names of added or changed secrets.'),
  removed: z.array(z.string()).describe('Names.'),
}).meta({ id: 'SecretsUpdate' })

export const FileUpdate = Envelope.extend({
  ...byUser,
  type: z.literal('FileUpdate'),
  path: z.string().describe('Relative to the workdir.'),
  action: z.enum(['upload', 'write', 'delete', 'mkdir']),
  size: z.int().nonnegative().optional().describe('Size of the file after the change, bytes.'),
  idempotency_key: z.string().optional(),
  body_hash: z.string().optional().describe('Hash of the request body.'),
}).meta({ id: 'FileUpdate' })

export const CommandResult = Envelope.extend({
  ...byEnvironment,
  type: z.literal('CommandResult'),
  command_id: z.uuid(),
  command: z.string(),
  session_id: z.string().describe('Shell session of the command.'),
  status: CommandStatus,
  killed_by: KilledBy.optional(),
  exit_code: z.int().nullable(),
  cwd: z.string().describe('Working directory of the session after the command.'),
  execution_time: z.number().nonnegative().describe('Seconds.'),
  background_pid: z.int().optional().describe('Process id of the last background process (`&`).'),
})
  .meta({ id: 'CommandResult' })
  .describe('A command of a client has ended. Its output is not in the log.')

export const ProcessesEnded = Envelope.extend({
  ...byEnvironment,
  type: z.literal('ProcessesEnded'),
  reason: z.literal('interrupted'),
  sessions: z.array(z.string()).describe('Shell sessions whose shell has ended.'),
  processes: z.int().nonnegative().describe('Processes in the background that have ended.'),
  command_lines: z.array(z.string()).describe('Of the first 20 of these processes, at most 200 characters each.'),
})
  .meta({ id: 'ProcessesEnded' })
  .describe(
    'An instance that stops has handed the conversation over: what ran there between the calls of the agents has ended. The agents read it.',
  )

export const TaskUpdate = Envelope.extend({
  source: z.enum(['user', 'environment']),
  ...InRun,
  type: z.literal('TaskUpdate'),
  task_id: z.uuid(),
  title: z.string(),
  status: TaskStatus,
  runnable: Runnable.optional().describe('In the first update (`pending`): the work of the task.'),
  progress: TaskProgress.optional().describe('While it runs, if it can be measured.'),
  result: TaskResult.optional().describe('In the last update, if there is a result.'),
  message: z.string().optional().describe('Reason of the outcome, if needed.'),
  ...KeyFields,
}).meta({ id: 'TaskUpdate' })

export const McpServerUpdate = Envelope.extend({
  ...byEnvironment,
  ...InRun,
  type: z.literal('McpServerUpdate'),
  server: z.string().describe('Its name in the configuration.'),
  status: McpStatus,
  error: z.string().optional().describe('Why it is not connected.'),
  authorization_url: AuthorizationUrl.optional(),
  tools: z.int().nonnegative().describe('Number of its tools.'),
})
  .meta({ id: 'McpServerUpdate' })
  .describe(
    'An MCP server is connected, or needs an authorization, or its connection failed or ended. It is then tried again with backoff.',
  )

export const ForkedFrom = Envelope.extend({
  ...byEnvironment,
  type: z.literal('ForkedFrom'),
  from_conversation_id: z.uuid().describe('The conversation from which all earlier events were copied.'),
  from_seq: z.int().positive().describe('The last copied event. Up to it, both conversations have the same seqs.'),
  from_cwd: z.string().describe('Workdir of the original at that event.'),
  cwd: z.string(),
  files: ForkedFiles.optional(),
  options_summary: z
    .record(z.string(), z.unknown())
    .describe('The configuration from this event on; secret values are masked.'),
}).meta({ id: 'ForkedFrom' })

export const ClientEvent = Envelope.extend({
  ...byUser,
  type: z.literal('ClientEvent'),
  name: z.string(),
  data: z.unknown().optional().describe('Any JSON, unchanged.'),
  ...KeyFields,
}).meta({ id: 'ClientEvent' })

export const NetworkAccess = Envelope.extend({
  ...byEnvironment,
  type: z.literal('NetworkAccess'),
  host: z.string().describe('`*`: further hosts that are not listed individually.'),
  port: NetworkTarget.port.optional(),
  allowed: z.boolean(),
  reason: z.string(),
  count: z.int().positive().describe('Number of connections with this decision in the last seconds.'),
})
  .meta({ id: 'NetworkAccess' })
  .describe('Logged when the policy has `log`.')
