/** Whether the tools `Skill` and `SlashCommand` are offered: if there is something that the agent can use with them. */
import type { CreateConversation } from '../../contract/conversation.ts'
import type { ProjectSettings } from '../../contract/project/project-settings.ts'
import { projectTools } from '../../project/project-prompt.ts'

const OF_PROJECTS: readonly string[] = ['Skill', 'SlashCommand']

/** `asked` are the names in the request. A list of no tools stays empty. */
export function offeredTools(
  asked: readonly string[],
  { tools }: Pick<CreateConversation, 'tools'>,
  settings: ProjectSettings | undefined,
): { readonly tools: readonly string[]; readonly warnings: readonly string[] } {
  const found = settings && asked.length > 0 ? projectTools(settings) : []
  const missing = OF_PROJECTS.filter((name) => asked.includes(name) && !found.includes(name))
  const isNamed = Array.isArray(tools)
  return {
    tools: [...new Set([...asked, ...found])].filter((name) => !missing.includes(name)),
    warnings: isNamed ? missing.map((name) => `${name} is not offered: the project settings have nothing for it.`) : [],
  }
}
