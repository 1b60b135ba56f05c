/** The `Task` tool: gives a task to a subagent, which has its own context. */
import { z } from 'zod'
import type { Tool } from '../tool.ts'
import type { TaskAccess, TaskInput } from './task-access.ts'

const TaskSchema = z.object({
  description: z.string().min(1).max(500).describe('The task in 3 to 5 words.'),
  prompt: z.string().min(1).describe('The task, with all that the subagent has to know and what it has to report.'),
  subagent_type: z.string().default('general-purpose').describe('The name of the agent.'),
  run_in_background: z
    .boolean()
    .default(false)
    .describe('Return at once. You get a message when the subagent has ended.'),
  resume: z
    .string()
    .optional()
    .describe('The agent_id of an earlier call: that subagent continues, with all that it has read and done.'),
}) satisfies z.ZodType<TaskInput>

const TaskOutput = z.object({
  agent_id: z.string().describe('For `resume`.'),
  agent_name: z.string(),
  stop_reason: z.string().describe('How the subagent ended; `background` if it works in the background.'),
  steps: z.int(),
  text: z.string().describe('The last message of the subagent.'),
})
export type TaskOutput = z.infer<typeof TaskOutput>

const DESCRIPTION = `Gives a task to a subagent, which works on it by itself and returns one message.

- The subagent has its own context and its own shell. It sees nothing of this conversation: write everything it needs into the prompt, and what it has to report.
- It works in the same directory. Do not have two subagents change the same files at the same time.
- Several calls in one turn run in parallel.
- The user does not see its message: tell them what matters of it.
- With run_in_background the call returns at once and you continue. When the subagent has ended, you get a message with its result.
- A result names the agent_id. Call again with it in resume to continue that subagent, for example after an interruption.`

export function createTask(access: TaskAccess): Tool<TaskInput> {
  return {
    name: 'Task',
    get description() {
      return `${DESCRIPTION}\n\nThe agents:\n${access.agents()}`
    },
    input: TaskSchema,
    output: TaskOutput,
    // Each call of the subagent is decided by itself.
    harmless: true,
    callsSubagent: true,
    run: (input, context) => access.run(input, context),
    render: (output) => renderTask(TaskOutput.parse(output)),
  }
}

function renderTask({ agent_id, stop_reason, text }: TaskOutput): string {
  if (stop_reason === 'background') return `${text}\n\n[agent_id: ${agent_id}]`
  return `${text || '[The subagent ended without a message.]'}\n\n[agent_id: ${agent_id}]`
}
