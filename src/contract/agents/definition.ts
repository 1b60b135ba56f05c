/** The agents that a conversation's agent can give tasks to: their definitions in requests, and in the settings. */
import { z } from 'zod'
import { currentTools } from '../values/earlier-tools.ts'
import { PermissionModeInput, RuleTexts } from '../values/permission.ts'

const MAX_AGENTS = 50
const MAX_DESCRIPTION_CHARS = 2000
const MAX_AGENT_PROMPT_CHARS = 50_000
const MAX_STEPS = 10_000
const MAX_DEPTH = 3
const MAX_CONCURRENT = 16

/** The agent that each conversation with the tool `Task` has, unless it defines one with this name. */
export const GENERAL_PURPOSE = 'general-purpose'

/** It is in prompts, calls and events. */
const AgentName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}$/, 'must have 1 to 64 letters, digits and the characters _ . : -')

export const AgentDefinition = z
  .strictObject({
    description: z.string().min(1).max(MAX_DESCRIPTION_CHARS).describe('When to use it; for the agent that calls it.'),
    prompt: z.string().min(1).max(MAX_AGENT_PROMPT_CHARS).describe('Its system prompt.'),
    tools: z
      .array(z.string().min(1).max(200))
      .max(100)
      .overwrite(currentTools)
      .optional()
      .describe(
        'Of the tools of the conversation, those that it has; also `mcp__<server>` and `mcp__<server>__<tool>`. Default: all except `Task` and `AskUserQuestion`.',
      ),
    disallowed_tools: RuleTexts.optional().describe('More `deny` rules, for its calls.'),
    model: z
      .string()
      .min(1)
      .max(500)
      .optional()
      .describe('A model of the same endpoint. `inherit`, or absent: that of the conversation.'),
    max_steps: z.int().positive().max(MAX_STEPS).optional().describe('Number of its model answers, at most.'),
    permission_mode: PermissionModeInput.optional().describe(
      'Its calls must be allowed in this mode and in that of the conversation: it never has more rights.',
    ),
  })
  .meta({
    id: 'AgentDefinition',
    examples: [
      {
        description: 'Reviews changes. Use it after each change of the code.',
        prompt: 'You review changes of code. List faults with file and line; do not change anything.',
        tools: ['Read', 'Grep', 'Glob', 'Bash'],
        permission_mode: 'plan',
      },
    ],
  })
export type AgentDefinition = z.infer<typeof AgentDefinition>

export const Agents = z
  .record(AgentName, AgentDefinition)
  .refine((agents) => Object.keys(agents).length <= MAX_AGENTS, { error: `has more than ${MAX_AGENTS} agents` })
export type Agents = z.infer<typeof Agents>

export const SubagentLimits = z
  .strictObject({
    max_concurrent: z
      .int()
      .min(1)
      .max(MAX_CONCURRENT)
      .optional()
      .describe('Subagents of the conversation that work at the same time; others wait. Default: 8.'),
    max_depth: z
      .int()
      .min(1)
      .max(MAX_DEPTH)
      .optional()
      .describe('Default 1: subagents have no subagents. With 2, those of agents whose `tools` have `Task` do.'),
  })
  .meta({ id: 'SubagentLimits', examples: [{ max_concurrent: 4 }] })
export type SubagentLimits = z.infer<typeof SubagentLimits>

/** An agent as clients see it. */
export const AgentEntry = z
  .object({
    name: z.string(),
    description: z.string(),
    origin: z.enum(['built_in', 'request', 'project']).describe('`project`: a file of the project settings.'),
    tools: z.array(z.string()).optional().describe('Absent: those of the conversation.'),
    model: z.string().optional().describe('Absent: that of the conversation.'),
  })
  .meta({ id: 'AgentEntry' })
export type AgentEntry = z.infer<typeof AgentEntry>
