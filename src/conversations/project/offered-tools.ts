/** Whether `Skill`, `SlashCommand` and `Task` are offered: if there is something that the agent can use with them. */
import type { CreateConversation } from '../../contract/conversation.ts'
import type { ProjectSettings } from '../../contract/project/project-settings.ts'
import { projectTools } from '../../project/project-prompt.ts'

const OF_PROJECTS: readonly string[] = ['Skill', 'SlashCommand']

/** `asked` are the names in the request. A list of no tools stays empty. */
export function offeredTools(
  requestedTools: readonly string[],
  { tools, agents }: Pick<CreateConversation, 'tools' | 'agents'>,
  settings: ProjectSettings | undefined,
): { readonly tools: readonly string[]; readonly warnings: readonly string[] } {
  const foundTools = settings && requestedTools.length > 0 ? projectTools(settings) : []
  const hasAgents = Object.keys(agents ?? {}).length > 0 || settings?.agents.some(({ definition }) => definition)
  const task = hasAgents && requestedTools.length > 0 ? ['Task'] : []
  const missing = OF_PROJECTS.filter((name) => requestedTools.includes(name) && !foundTools.includes(name))
  const isNamed = Array.isArray(tools)
  return {
    tools: [...new Set([...requestedTools, ...foundTools, ...task])].filter((name) => !missing.includes(name)),
    warnings: isNamed ? missing.map((name) => `${name} is not offered: the project settings have nothing for it.`) : [],
  }
}
