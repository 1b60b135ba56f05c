/** The events of a conversation: one discriminated union on `type`, durable and transient, and the cursor rules they carry. */
import { z } from 'zod'
import { CommandStatus, KilledBy } from '../command-status.ts'
import { AssistantPart, Usage, UsageByModel, UserPart } from '../message.ts'
import { ResourceLimits } from '../resource-limits.ts'
import { NetworkPolicy, NetworkTarget } from '../network.ts'
import { Runnable, TaskProgress, TaskResult, TaskStatus } from '../task.ts'
import { Sandbox } from '../sandbox.ts'

/** Schema version of the events this server writes. A log with a higher one is read, but not run. */
export const EVENT_VERSION = 1

export const Status = z
  .enum([
    'idle',
    'running',
    'waiting_for_confirmation',
    'waiting_for_input',
    'paused',
    'finished',
    'error',
    'cancelled',
  ])
  .meta({ id: 'Status' })
export type Status = z.infer<typeof Status>

export const ErrorType = z
  .enum(['auth', 'quota', 'rate_limit', 'context_window', 'content_filter', 'config', 'network', 'tool', 'internal'])
  .meta({ id: 'ErrorType' })
export type ErrorType = z.infer<typeof ErrorType>

/** Why a run ended. `completed` is a text-only answer, `finished` the Finish tool; `superseded` by a message; `stuck`: the agent repeated the same failing calls; `content_filter`: the provider's filter ended the answer. */
export const StopReason = z
  .enum([
    'completed',
    'finished',
    'paused',
    'max_steps',
    'iteration_limit',
    'time_limit',
    'stuck',
    'content_filter',
    'error',
    'server_restart',
    'rejected',
    'superseded',
    'cancelled',
  ])
  .meta({ id: 'StopReason' })
export type StopReason = z.infer<typeof StopReason>

/** Why a tool call has no ordinary result. */
export const ToolErrorType = z
  .enum(['invalid_input', 'unknown_tool', 'failed', 'timeout', 'interrupted', 'resource_limit', 'rejected', 'denied'])
  .meta({ id: 'ToolErrorType' })
export type ToolErrorType = z.infer<typeof ToolErrorType>

const Envelope = z.object({
  id: z.uuid().describe('UUIDv7.'),
  seq: z.int().positive().describe('Position in the conversation, from 1, without gaps. The cursor of all readers.'),
  timestamp: z.iso.datetime(),
  conversation_id: z.uuid(),
  version: z.int().positive().describe('Schema version of the event.'),
})

export const InRun = { run_id: z.uuid().optional() }
/** Of the request that it came with. */
const Keyed = {
  idempotency_key: z.string().optional(),
  body_hash: z.string().optional().describe('Hash of the request body.'),
}
const InSubagent = { parent_tool_use_id: z.string().optional(), agent_name: z.string().optional() }

const byUser = { source: z.literal('user') }
const byAgent = { source: z.literal('agent') }
const byEnvironment = { source: z.literal('environment') }

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
  system_prompt: z.string(),
  isolation: z.enum(['bubblewrap', 'none']),
  resource_limits: ResourceLimits.optional().describe('Absent in logs of older versions.'),
  network: NetworkPolicy.optional().describe('Network policy at that time. A `ConfigUpdate` can change it.'),
  sandbox: Sandbox.optional().describe('Absent without one, and in events of older versions.'),
}).meta({ id: 'SystemInit' })

export const UserMessage = Envelope.extend({
  ...byUser,
  run_id: z.uuid().optional().describe('The run that it started, or that reads it.'),
  type: z.literal('UserMessage'),
  content: z.array(UserPart),
  run: z.boolean().describe('Whether it requested a run. A run does not end before it has read such a message.'),
  sender: z.string().optional(),
  task_id: z.uuid().optional().describe('The task that it starts.'),
  ...Keyed,
}).meta({ id: 'UserMessage' })

export const AssistantMessage = Envelope.extend({
  ...byAgent,
  ...InRun,
  ...InSubagent,
  type: z.literal('AssistantMessage'),
  message_id: z.uuid().describe('The same id as in its deltas.'),
  text: z.string(),
  content: z.array(AssistantPart),
  tool_use_ids: z.array(z.string()),
  model: z.string(),
  usage: Usage,
  cost_usd: z.number().nonnegative().optional(),
  stop_reason: z.string().describe('Finish reason of the provider.'),
  read_through: z
    .int()
    .nonnegative()
    .optional()
    .describe('Seq of the last event that the model had read when it gave this answer.'),
  partial: z.boolean().optional().describe('The model failed after this part of its answer.'),
}).meta({ id: 'AssistantMessage' })

export const ToolUse = Envelope.extend({
  ...byAgent,
  ...InRun,
  ...InSubagent,
  type: z.literal('ToolUse'),
  tool_use_id: z.string(),
  name: z.string(),
  input: z.unknown().describe('Arguments of the call; a string if the model sent no valid JSON object.'),
}).meta({ id: 'ToolUse' })

export const ToolResult = Envelope.extend({
  ...byEnvironment,
  ...InRun,
  ...InSubagent,
  type: z.literal('ToolResult'),
  tool_use_id: z.string(),
  output: z.unknown().describe('Text, a list of text and image parts, or an object of the output schema of the tool.'),
  is_error: z.boolean(),
  error_type: ToolErrorType.optional(),
  error_message: z.string().optional(),
  duration_ms: z.number().nonnegative(),
  truncated: z.boolean().optional(),
  ran_input: z.unknown().optional().describe('The input that ran, if a decision changed it.'),
  full_output_path: z.string().optional().describe('File with the complete output, if it was truncated.'),
  advice: z.string().optional().describe('Advice of the server for the model, appended to the output.'),
}).meta({ id: 'ToolResult' })

export const PermissionRequest = Envelope.extend({
  ...byEnvironment,
  ...InRun,
  type: z.literal('PermissionRequest'),
  request_id: z.uuid(),
  tool_uses: z.array(
    z.object({
      tool_use_id: z.string(),
      name: z.string(),
      input: z.unknown().describe('The arguments of the call: an object, or text if the model sent no JSON object.'),
      input_hash: z.string().describe('SHA-256 of the canonical JSON (RFC 8785) of {name, input}.'),
      reason: z.string(),
    }),
  ),
}).meta({ id: 'PermissionRequest' })

export const PermissionDecision = Envelope.extend({
  source: z.enum(['user', 'environment']),
  ...InRun,
  type: z.literal('PermissionDecision'),
  request_id: z.uuid(),
  tool_use_id: z.string(),
  input_hash: z.string(),
  behavior: z.enum(['allow', 'deny']),
  updated_input: z.unknown().optional().describe('The input that ran instead.'),
  message: z.string().optional(),
  decided_by: z.enum(['user', 'superseded']),
}).meta({ id: 'PermissionDecision' })

/** Reasons of a `StatusUpdate` that leaves the status `running`: the run waits until fewer others work; it works now. */
export const QUEUED = 'queued'
export const DEQUEUED = 'dequeued'

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
}).meta({ id: 'StatusUpdate' })

export const ConfigUpdate = Envelope.extend({
  ...byUser,
  type: z.literal('ConfigUpdate'),
  changes: z.record(z.string(), z.unknown()).describe('The changed fields; secret values are masked.'),
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
  ...Keyed,
}).meta({ id: 'TaskUpdate' })

export const ForkedFrom = Envelope.extend({
  ...byEnvironment,
  type: z.literal('ForkedFrom'),
  from_conversation_id: z.uuid().describe('The conversation from which all earlier events were copied.'),
  from_seq: z.int().positive().describe('The last copied event. Up to it, both conversations have the same seqs.'),
  from_cwd: z.string().describe('Workdir of the original at that event.'),
  cwd: z.string(),
  options_summary: z
    .record(z.string(), z.unknown())
    .describe('The configuration from this event on; secret values are masked.'),
}).meta({ id: 'ForkedFrom' })

export const ClientEvent = Envelope.extend({
  ...byUser,
  type: z.literal('ClientEvent'),
  name: z.string(),
  data: z.unknown().optional().describe('Any JSON, unchanged.'),
  ...Keyed,
}).meta({ id: 'ClientEvent' })

export const NetworkRequest = Envelope.extend({
  ...byEnvironment,
  ...InRun,
  type: z.literal('NetworkRequest'),
  request_id: z.uuid(),
  ...NetworkTarget,
})
  .meta({ id: 'NetworkRequest' })
  .describe('A connection to an unlisted host waits for a decision.')

export const NetworkDecision = Envelope.extend({
  source: z.enum(['user', 'environment']),
  type: z.literal('NetworkDecision'),
  request_id: z.uuid(),
  ...NetworkTarget,
  behavior: z.enum(['allow', 'deny']),
  decided_by: z
    .enum(['user', 'timeout', 'policy', 'server_restart'])
    .describe('`policy`: the policy was changed. `timeout`: no decision in time.'),
}).meta({ id: 'NetworkDecision' })

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

export const ModelRetry = Envelope.extend({
  ...byEnvironment,
  ...InRun,
  type: z.literal('ModelRetry'),
  message_id: z.uuid().describe('Message id of the failed attempt. Discard its deltas.'),
  error_type: ErrorType,
  message: z.string().describe('Why the attempt failed.'),
  retry: z.int().positive().describe('Number of the next retry, from 1.'),
  max_retries: z.int().positive().describe('Maximum number of retries. After that the run ends with an error.'),
  wait_ms: z.int().nonnegative().describe('Milliseconds until the retry.'),
})
  .meta({ id: 'ModelRetry' })
  .describe('A model request failed with a retryable error, and is retried after a wait.')

export const ErrorEvent = Envelope.extend({
  ...byEnvironment,
  ...InRun,
  type: z.literal('ErrorEvent'),
  error_type: ErrorType,
  message: z.string(),
  retryable: z.boolean(),
  details: z.record(z.string(), z.unknown()).optional().describe('Machine-readable details, depending on the type.'),
}).meta({ id: 'ErrorEvent' })

export const Result = Envelope.extend({
  ...byEnvironment,
  ...InRun,
  ...InSubagent,
  type: z.literal('Result'),
  final_text: z.string(),
  usage: UsageByModel.describe('Usage of this run, by model.'),
  cost_usd: z.number().nonnegative().optional(),
  stop_reason: StopReason,
  steps: z.int().nonnegative().describe('Number of model answers in this run.'),
  duration_ms: z.number().nonnegative(),
  session_id: z.uuid(),
}).meta({ id: 'Result' })

/** Every durable event. */
export const Event = z
  .discriminatedUnion('type', [
    SystemInit,
    UserMessage,
    AssistantMessage,
    ToolUse,
    ToolResult,
    PermissionRequest,
    PermissionDecision,
    StatusUpdate,
    ConfigUpdate,
    SecretsUpdate,
    FileUpdate,
    CommandResult,
    TaskUpdate,
    ForkedFrom,
    ClientEvent,
    NetworkRequest,
    NetworkDecision,
    NetworkAccess,
    ModelRetry,
    ErrorEvent,
    Result,
  ])
  .meta({ id: 'Event' })
export type Event = z.infer<typeof Event>
export type EventType = Event['type']
export type EventOf<T extends EventType> = Extract<Event, { type: T }>

export const EVENT_TYPES = Event.options.map((option) => option.shape.type.value)

/** What a writer gives the log; the log adds the rest of the envelope. */
export type EventDraft = {
  [T in EventType]: Omit<EventOf<T>, 'id' | 'seq' | 'timestamp' | 'conversation_id' | 'version'>
}[EventType]
