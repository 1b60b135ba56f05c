/** The `Finish` tool: the agent says that its work is done, which ends the run as `finished`. */
import { z } from 'zod'
import type { Tool } from './tool.ts'

const FinishInput = z.object({
  message: z
    .string()
    .describe('The last words to the user: what was done, what shows that it works, and what was left out.'),
})
type FinishInput = z.infer<typeof FinishInput>

const DESCRIPTION = `Ends your work on the task. Call it, alone, when all that was asked is done and checked, or when you cannot continue without the user. The user reads \`message\` as your answer.`

export function createFinish(): Tool<FinishInput> {
  return {
    name: 'Finish',
    description: DESCRIPTION,
    input: FinishInput,
    output: z.string(),
    finishes: true,
    harmless: true,
    run: async ({ message }) => ({ output: message }),
  }
}
