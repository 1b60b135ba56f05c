/** The `SlashCommand` tool: the agent uses a slash command of the project, as a user does by writing it. */
import { z } from 'zod'
import type { Tool } from '../tool.ts'
import type { ProjectAccess } from './project-access.ts'

const SlashCommandInput = z.object({
  command: z.string().min(1).describe('The slash command with its arguments: `/review-pr 123`.'),
})
type SlashCommandInput = z.infer<typeof SlashCommandInput>

const DESCRIPTION = `Runs a slash command: the result is its text, with the arguments in it, to be followed in this conversation.

- The system prompt lists the slash commands. Use only those.
- If the user's message already has the text of a command, follow it and do not run the command again.
- Commands for the shell that are part of a slash command have run already: their output is in the text. Where one was not permitted, the text says so.
- If the user wants several slash commands, run them one after the other.`

export function createSlashCommand(project: ProjectAccess): Tool<SlashCommandInput> {
  return {
    name: 'SlashCommand',
    description: DESCRIPTION,
    input: SlashCommandInput,
    output: z.string(),
    access: ({ command }) => project.accessOfCommand(command),
    run: ({ command }, { signal }) => project.useCommand(command, signal),
  }
}
