/** The events of the agent: its answers, its tool calls, and the end of its runs. */
import { z } from 'zod'
import { AssistantPart, Usage, UsageByModel } from '../values/message.ts'
import { FileEdit } from './file-edit.ts'
import { byAgent, byEnvironment, Envelope, InRun, InSubagent } from './envelope.ts'
import { ErrorType, StopReason, ToolErrorType } from './status.ts'
import { PermissionMode } from '../values/permission.ts'

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
  provider: z.string().optional().describe('The API that the model was asked through: `openai`, `anthropic`, ….'),
  duration_ms: z
    .number()
    .nonnegative()
    .optional()
    .describe('From the request to the end of the answer, without the attempts before it.'),
  first_delta_ms: z
    .number()
    .nonnegative()
    .optional()
    .describe('From the request to the first piece of the answer. Absent without one.'),
  usage: Usage,
  cost_usd: z.number().nonnegative().optional(),
  stop_reason: z.string().describe('Finish reason of the provider.'),
  read_through: z
    .int()
    .nonnegative()
    .optional()
    .describe('Seq of the last event that the model had read when it gave this answer.'),
  partial: z.boolean().optional().describe('The model failed, or was interrupted, after this part of its answer.'),
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
  changes: z.array(FileEdit).optional().describe('The files that an editing tool has changed. Not shown to the model.'),
  full_output_path: z.string().optional().describe('File with the complete output, if it was truncated.'),
  changed_by: z.enum(['user', 'hook']).optional().describe('What changed the input. Absent: a decision of the user.'),
  context: z.string().optional().describe('What hooks added for the model, appended to the output.'),
  advice: z.string().optional().describe('Advice of the server for the model, appended to the output.'),
}).meta({ id: 'ToolResult' })

export const ModelRetry = Envelope.extend({
  ...byEnvironment,
  ...InRun,
  ...InSubagent,
  type: z.literal('ModelRetry'),
  message_id: z.uuid().describe('Message id of the failed attempt. Discard its deltas.'),
  error_type: ErrorType,
  message: z.string().describe('Why the attempt failed.'),
  retry: z.int().positive().describe('Number of the next retry, from 1.'),
  max_retries: z.int().positive().describe('Maximum number of retries. After that the run ends with an error.'),
  wait_ms: z.int().nonnegative().describe('Milliseconds until the retry.'),
  next_model: z.string().optional().describe('The model of the next attempt, if it is another one.'),
})
  .meta({ id: 'ModelRetry' })
  .describe('A model request failed with a retryable error, and is retried after a wait.')

export const OutputRequest = Envelope.extend({
  ...byEnvironment,
  ...InRun,
  type: z.literal('OutputRequest'),
  output_schema: z.record(z.string(), z.unknown()).optional().describe('The JSON Schema that the run has from now on.'),
  fault: z.string().optional().describe('Why the last answer is not valid. The model is asked once more.'),
})
  .meta({ id: 'OutputRequest' })
  .describe('The model is asked for an answer that is valid for `output_schema`.')

export const ErrorEvent = Envelope.extend({
  ...byEnvironment,
  ...InRun,
  ...InSubagent,
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
  structured_output: z
    .unknown()
    .optional()
    .describe('The final answer as JSON, valid for the `output_schema` of the run. Absent without a schema.'),
  stop_reason: StopReason,
  interrupted: z
    .literal(true)
    .optional()
    .describe('A client stopped the run with `interrupt`, or this subagent: the last answer may be `partial`.'),
  changes: z
    .object({
      files: z.int().nonnegative(),
      added: z.int().nonnegative().describe('Lines.'),
      removed: z.int().nonnegative().describe('Lines.'),
    })
    .optional()
    .describe('What has changed in the workdir during the run; with `file_checkpointing` only.'),
  snapshot_failed: z
    .literal(true)
    .optional()
    .describe('A snapshot of the workdir could not be taken: what the run has changed since is in none.'),
  steps: z.int().nonnegative().describe('Number of model answers in this run.'),
  duration_ms: z.number().nonnegative(),
  session_id: z.uuid(),
  background_agent_id: z
    .uuid()
    .optional()
    .describe('Of a subagent that worked in the background. The main agent reads this result as a message.'),
  waits_for_user: z
    .literal(true)
    .optional()
    .describe(
      'Subagents have started 20 runs in a row, so that no run starts now that reads the result of a subagent. It waits until a client posts a message, a task or `run`.',
    ),
}).meta({ id: 'Result' })

export const SubagentStart = Envelope.extend({
  ...byEnvironment,
  ...InRun,
  type: z.literal('SubagentStart'),
  parent_tool_use_id: z.string().describe('The `Task` call that it works for. Its events name the same call.'),
  agent_name: z.string(),
  agent_id: z.uuid().describe('A later `Task` call with this id in `resume` continues it.'),
  description: z.string().describe('The task in a few words.'),
  prompt: z.string().describe('The task. The subagent reads it as its first, or its next, message.'),
  system_prompt: z.string(),
  tools: z.array(z.string()).describe('`mcp__*` stands for all tools of MCP servers.'),
  disallowed_tools: z.array(z.string()).optional().describe('Rules that deny.'),
  model: z.string().optional().describe('Absent: that of the conversation.'),
  permission_mode: PermissionMode.optional(),
  max_steps: z.int().positive().optional(),
  background: z.boolean().describe('Whether the call has its result already.'),
  first_seq: z.int().positive().optional().describe('The first `SubagentStart` of a subagent that is continued.'),
})
  .meta({ id: 'SubagentStart' })
  .describe('A subagent begins, or continues. It ends with a `Result` that has the same `parent_tool_use_id`.')
