/** The event that begins the work of a subagent. All events of the subagent name the same call in `parent_tool_use_id`. */
import { z } from 'zod'
import { PermissionMode } from '../values/permission.ts'
import { byEnvironment, Envelope, InRun } from './envelope.ts'

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
