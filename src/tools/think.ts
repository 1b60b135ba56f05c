/** The `Think` tool: records a thought in the log and has no other effect. */
import { z } from 'zod'
import type { Tool } from './tool.ts'

const ThinkInput = z.object({ thought: z.string().describe('Your thought.') })
type ThinkInput = z.infer<typeof ThinkInput>

const DESCRIPTION = `Writes down a thought, and does nothing else. Use it to work out something complicated before you act: what a test's failure means, which of several ways is the simplest, whether the work keeps to every rule you were given.`

export function createThink(): Tool<ThinkInput> {
  return {
    name: 'Think',
    description: DESCRIPTION,
    input: ThinkInput,
    output: z.string(),
    harmless: true,
    run: async () => ({ output: 'Your thought has been noted.' }),
  }
}
