/** The events of a conversation: one discriminated union on `type`, durable and transient, and the cursor rules they carry. */
import { z } from 'zod'
import { CommandStatus, KilledBy } from './command-status.ts'
import { AssistantPart, Usage, UsageByModel, UserPart } from './message.ts'
import { ResourceLimits } from './resource-limits.ts'
import { NetworkPolicy, NetworkTarget } from './network.ts'
import { Runnable, TaskProgress, TaskResult, TaskStatus } from './task.ts'
import { Sandbox } from './sandbox.ts'

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
  seq: z.int().positive().describe('Position in the conversation, from 1, without gaps; the cursor of every reader.'),
  timestamp: z.iso.datetime(),
  conversation_id: z.uuid(),
  version: z.int().positive().describe('Schema version of the event.'),
})

export const InRun = { run_id: z.uuid().optional() }
/** Of the request that it came with. */
const Keyed = {
  idempotency_key: z.string().optional(),
  body_hash: z.string().optional().describe('Of the request that came with the key.'),
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
  options_summary: z.record(z.string(), z.unknown()).describe('How the conversation was made; secret values masked.'),
  enabled_tools: z.array(z.string()),
  enabled_providers: z.array(z.string()),
  mcp_servers: z.array(z.object({ name: z.string(), status: z.string() })),
  system_prompt: z.string(),
  isolation: z.enum(['bubblewrap', 'none']),
  resource_limits: ResourceLimits.optional().describe('Absent in logs of older servers.'),
  network: NetworkPolicy.optional().describe('What the conversation could reach then; a `ConfigUpdate` may change it.'),
  sandbox: Sandbox.optional().describe('Absent when there was none, and in events of older servers.'),
}).meta({ id: 'SystemInit' })

export const UserMessage = Envelope.extend({
  ...byUser,
  run_id: z.uuid().optional().describe('The run it asked for, or is read by.'),
  type: z.literal('UserMessage'),
  content: z.array(UserPart),
  run: z.boolean().describe('Whether it asked for a run; a run does not end before it has read such a message.'),
  sender: z.string().optional(),
  task_id: z.uuid().optional().describe('The task it begins.'),
  ...Keyed,
}).meta({ id: 'UserMessage' })

export const AssistantMessage = Envelope.extend({
  ...byAgent,
  ...InRun,
  ...InSubagent,
  type: z.literal('AssistantMessage'),
  message_id: z.uuid().describe('The same as on the deltas it was streamed in.'),
  text: z.string(),
  content: z.array(AssistantPart),
  tool_use_ids: z.array(z.string()),
  model: z.string(),
  usage: Usage,
  cost_usd: z.number().nonnegative().optional(),
  stop_reason: z.string().describe("The provider's finish reason."),
  read_through: z
    .int()
    .nonnegative()
    .optional()
    .describe('Seq of the last event that the model had read when it gave this answer.'),
  partial: z.boolean().optional().describe('The model failed after it had said this much.'),
}).meta({ id: 'AssistantMessage' })

export const ToolUse = Envelope.extend({
  ...byAgent,
  ...InRun,
  ...InSubagent,
  type: z.literal('ToolUse'),
  tool_use_id: z.string(),
  name: z.string(),
  input: z.unknown().describe("The call's arguments; a string where the model sent no valid JSON object."),
}).meta({ id: 'ToolUse' })

export const ToolResult = Envelope.extend({
  ...byEnvironment,
  ...InRun,
  ...InSubagent,
  type: z.literal('ToolResult'),
  tool_use_id: z.string(),
  output: z.unknown().describe("By the tool's output schema; text; or a list of text and image parts."),
  is_error: z.boolean(),
  error_type: ToolErrorType.optional(),
  error_message: z.string().optional(),
  duration_ms: z.number().nonnegative(),
  truncated: z.boolean().optional(),
  ran_input: z.unknown().optional().describe('What ran, where a decision changed the input.'),
  full_output_path: z.string().optional().describe('Where the whole output is, when it was truncated.'),
  advice: z.string().optional().describe('What the server tells the model behind the output.'),
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
      input: z.unknown().describe('The arguments of the call: an object, or text where the model sent none.'),
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
  updated_input: z.unknown().optional().describe('What ran instead.'),
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
    .describe('Why. `queued` and `dequeued` leave the status `running`: the run waits for its turn, and then has it.'),
  max_steps: z.int().positive().optional().describe('Model answers after which the run that begins here pauses.'),
}).meta({ id: 'StatusUpdate' })

export const ConfigUpdate = Envelope.extend({
  ...byUser,
  type: z.literal('ConfigUpdate'),
  changes: z.record(z.string(), z.unknown()).describe('What changed, by field; secret values masked.'),
}).meta({ id: 'ConfigUpdate' })

export const SecretsUpdate = Envelope.extend({
  ...byUser,
  type: z.literal('SecretsUpdate'),
  added: z.array(z.string()).describe('Names that got a value, or another one.'),
  removed: z.array(z.string()).describe('Names.'),
}).meta({ id: 'SecretsUpdate' })

export const FileUpdate = Envelope.extend({
  ...byUser,
  type: z.literal('FileUpdate'),
  path: z.string().describe('Relative to the workdir.'),
  action: z.enum(['upload', 'write', 'delete', 'mkdir']),
  size: z.int().nonnegative().optional().describe('Of the file after the change, bytes.'),
  idempotency_key: z.string().optional(),
  body_hash: z.string().optional().describe('Of the request that came with the key.'),
}).meta({ id: 'FileUpdate' })

export const CommandResult = Envelope.extend({
  ...byEnvironment,
  type: z.literal('CommandResult'),
  command_id: z.uuid(),
  command: z.string(),
  session_id: z.string().describe('The shell session it ran in.'),
  status: CommandStatus,
  killed_by: KilledBy.optional(),
  exit_code: z.int().nullable(),
  cwd: z.string().describe('Where the session stands afterwards.'),
  execution_time: z.number().nonnegative().describe('Seconds.'),
  background_pid: z.int().optional().describe('Of a trailing `&`.'),
})
  .meta({ id: 'CommandResult' })
  .describe('A command that a client ran has ended. What it wrote is not in the log.')

export const TaskUpdate = Envelope.extend({
  source: z.enum(['user', 'environment']),
  ...InRun,
  type: z.literal('TaskUpdate'),
  task_id: z.uuid(),
  title: z.string(),
  status: TaskStatus,
  runnable: Runnable.optional().describe('With the first update, `pending`: what is to be done.'),
  progress: TaskProgress.optional().describe('While it runs, where it can be counted.'),
  result: TaskResult.optional().describe('With the last update, where something came of it.'),
  message: z.string().optional().describe('Why it ended so, where that is not plain.'),
  ...Keyed,
}).meta({ id: 'TaskUpdate' })

export const ForkedFrom = Envelope.extend({
  ...byEnvironment,
  type: z.literal('ForkedFrom'),
  from_conversation_id: z.uuid().describe('The conversation that all events before this one were copied from.'),
  from_seq: z.int().positive().describe('Its last event that was copied; up to there both have the same seqs.'),
  from_cwd: z.string().describe('Where it worked then.'),
  cwd: z.string(),
  options_summary: z.record(z.string(), z.unknown()).describe('The configuration from here on; secret values masked.'),
}).meta({ id: 'ForkedFrom' })

export const ClientEvent = Envelope.extend({
  ...byUser,
  type: z.literal('ClientEvent'),
  name: z.string(),
  data: z.unknown().optional().describe('Any JSON, as the client sent it.'),
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
  .describe('A connection to a host that the policy does not list waits for a decision.')

export const NetworkDecision = Envelope.extend({
  source: z.enum(['user', 'environment']),
  type: z.literal('NetworkDecision'),
  request_id: z.uuid(),
  ...NetworkTarget,
  behavior: z.enum(['allow', 'deny']),
  decided_by: z
    .enum(['user', 'timeout', 'policy', 'server_restart'])
    .describe('`policy`: a change of the policy. `timeout`: nobody in time.'),
}).meta({ id: 'NetworkDecision' })

export const NetworkAccess = Envelope.extend({
  ...byEnvironment,
  type: z.literal('NetworkAccess'),
  host: z.string().describe('`*`: further hosts, of which there were too many to name.'),
  port: NetworkTarget.port.optional(),
  allowed: z.boolean(),
  reason: z.string(),
  count: z.int().positive().describe('Connections of the last seconds that were decided so.'),
})
  .meta({ id: 'NetworkAccess' })
  .describe('Told when the policy says `log`.')

export const ModelRetry = Envelope.extend({
  ...byEnvironment,
  ...InRun,
  type: z.literal('ModelRetry'),
  message_id: z.uuid().describe('Of the deltas of the attempt that failed: forget them.'),
  error_type: ErrorType,
  message: z.string().describe('Why the attempt failed.'),
  retry: z.int().positive().describe('Which retry of the request comes next, from 1.'),
  max_retries: z.int().positive().describe('Retries after which the run ends with an error.'),
  wait_ms: z.int().nonnegative().describe('Milliseconds until the request is sent again.'),
})
  .meta({ id: 'ModelRetry' })
  .describe('A model request failed in a way that may pass, and is sent again after a wait.')

export const ErrorEvent = Envelope.extend({
  ...byEnvironment,
  ...InRun,
  type: z.literal('ErrorEvent'),
  error_type: ErrorType,
  message: z.string(),
  retryable: z.boolean(),
  details: z.record(z.string(), z.unknown()).optional().describe('What a program may want to know, by type.'),
}).meta({ id: 'ErrorEvent' })

export const Result = Envelope.extend({
  ...byEnvironment,
  ...InRun,
  ...InSubagent,
  type: z.literal('Result'),
  final_text: z.string(),
  usage: UsageByModel.describe('Of this run, by model.'),
  cost_usd: z.number().nonnegative().optional(),
  stop_reason: StopReason,
  steps: z.int().nonnegative().describe('Model answers in this run.'),
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
