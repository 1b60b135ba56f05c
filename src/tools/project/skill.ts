/** The `Skill` tool: reads the instructions of a skill of the project when the agent needs them. */
import { z } from 'zod'
import type { Tool } from '../tool.ts'
import type { ProjectAccess } from './project-access.ts'

const SkillInput = z.object({
  skill: z.string().min(1).describe('The name of the skill, as it is listed: `pdf`, `review-pr`.'),
  args: z.string().optional().describe('Arguments for the skill, if it takes any.'),
})
type SkillInput = z.infer<typeof SkillInput>

const DESCRIPTION = `Reads the instructions of a skill, to be followed in this conversation.

- The system prompt lists the skills. When one of them fits the task, call this first, before you work on the task or answer.
- The result has the directory of the skill: read the further files that the instructions name from there, with your other tools.
- Use only skills that are listed, and do not read one again whose instructions you already have.`

export function createSkill(project: ProjectAccess): Tool<SkillInput> {
  return {
    name: 'Skill',
    description: DESCRIPTION,
    input: SkillInput,
    output: z.string(),
    access: ({ skill }) => project.accessOfSkill(skill),
    run: ({ skill, args = '' }) => project.useSkill(skill, args),
  }
}
