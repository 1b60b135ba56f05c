/** The agents that a conversation's `Task` tool knows, and what a new subagent gets of its definition. */
import type { AgentDefinition, AgentEntry } from '../../contract/agents/definition.ts'
import { GENERAL_PURPOSE } from '../../contract/agents/definition.ts'
import { modeNamed } from '../../contract/values/permission.ts'
import { buildSystemPrompt, tellDirectories } from '../../agent/prompt.ts'
import { originOf } from '../config/llm-origin.ts'
import type { Settings } from '../../state/settings.ts'
import type { State } from '../../state/state-shape.ts'
import { depthBelow, findSubagent } from '../../state/subagents.ts'
import type { NewSubagent } from '../../state/subagent-intents.ts'

/** Its definition; without a prompt it has the one of the server. */
export type KnownAgent = Pick<AgentEntry, 'name' | 'origin'> & {
  readonly definition: Omit<AgentDefinition, 'prompt'> & { readonly prompt?: string | undefined }
}

const BUILT_IN: KnownAgent = {
  name: GENERAL_PURPOSE,
  origin: 'built_in',
  definition: {
    description:
      'For research, searches in many files, and tasks of several steps. It has all tools of this conversation.',
  },
}

/** Returns the agents in listed order; agents of the request replace those of files, and these the built-in one. */
export function agentsIn({
  agents = {},
  project_settings,
}: Pick<Settings, 'agents' | 'project_settings'>): KnownAgent[] {
  const ofFiles = (project_settings?.agents ?? []).flatMap(({ name, description, definition }): KnownAgent[] =>
    definition ? [{ name, origin: 'project', definition: { ...definition, description } }] : [],
  )
  const ofRequest = Object.entries(agents).map(([name, definition]): KnownAgent => ({
    name,
    origin: 'request',
    definition,
  }))
  return [...new Map([BUILT_IN, ...ofFiles, ...ofRequest].map((each) => [each.name, each])).values()]
}

export function agentEntries(settings: Settings): AgentEntry[] {
  if (!settings.tools.includes('Task')) return []
  return agentsIn(settings).map(({ name, origin, definition: { description, tools, model } }) => ({
    name,
    description,
    origin,
    ...(tools && { tools: [...tools] }),
    ...(isOwn(model) && { model }),
  }))
}

/** Returns a text for the model, the same for the same settings. */
export function listAgents(settings: Settings): string {
  return agentEntries(settings)
    .map(({ name, description, tools }) => `- ${name}: ${description}${tools ? ` (Tools: ${tools.join(', ')})` : ''}`)
    .join('\n')
}

const isOwn = (model: string | undefined) => model !== undefined && model !== 'inherit'

/** All tools of MCP servers. */
const ALL_MCP_TOOLS = 'mcp__*'

/** Nobody answers a subagent, and a subagent has subagents only if its definition says so. */
const NOT_INHERITED = new Set(['AskUserQuestion', 'Task'])

export type Limits = { readonly maxConcurrent: number; readonly maxDepth: number }

export const limitsOf = ({ subagent_limits: { max_concurrent = 8, max_depth = 1 } = {} }: Settings): Limits => ({
  maxConcurrent: max_concurrent,
  maxDepth: max_depth,
})

type GrantedSettings = Pick<
  NewSubagent,
  'system_prompt' | 'tools' | 'disallowed_tools' | 'model' | 'permission_mode' | 'max_steps'
>

/**
 * Returns what the subagent of a call gets: of the tools, none that its caller does not have. `callerId` is that of the
 * caller.
 */
export function grant(state: State, callerId: string | undefined, { definition }: KnownAgent): GrantedSettings {
  const { settings } = state
  const { prompt, disallowed_tools, model, permission_mode, max_steps } = definition
  const caller = callerId === undefined ? undefined : findSubagent(state, callerId)
  const available = caller ? caller.tools : toolsIn(settings)
  const tools = toolsOf(definition.tools, available, depthBelow(state, callerId) < limitsOf(settings).maxDepth)
  const { llm_config: llm } = settings
  // The model of a file is not checked before: the key must not be sent to another endpoint.
  const isUsable = isOwn(model) && originOf({ ...llm, model }) === originOf(llm)
  const keptModel = isUsable ? model : caller?.model
  return {
    system_prompt: promptOf(prompt, settings, tools),
    tools,
    ...(disallowed_tools?.length && { disallowed_tools: [...disallowed_tools] }),
    ...(keptModel !== undefined && { model: keptModel }),
    ...(permission_mode && { permission_mode: modeNamed(permission_mode) }),
    ...(max_steps !== undefined && { max_steps }),
  }
}

/** Returns the tools of the main agent. */
function toolsIn({ tools, mcp, client_tools = [] }: Settings): string[] {
  return [...tools, ...(mcp ? [ALL_MCP_TOOLS] : []), ...client_tools.map(({ name }) => name)]
}

/** `mayCall`: whether it may have subagents, too. */
function toolsOf(wantedTools: readonly string[] | undefined, available: readonly string[], mayCall: boolean): string[] {
  if (!wantedTools) return available.filter((name) => !NOT_INHERITED.has(name))
  const isAvailable = (name: string) =>
    available.includes(name) || (name.startsWith('mcp__') && available.some((each) => coversMcpTool(each, name)))
  return wantedTools.filter((name) => name !== 'AskUserQuestion' && (name !== 'Task' || mayCall) && isAvailable(name))
}

/** True if `entry` of a list of tools stands for this tool, which is one of MCP servers. */
export function coversMcpTool(entry: string, name: string): boolean {
  if (entry === ALL_MCP_TOOLS) return true
  return entry.startsWith('mcp__') && (name === entry || name.startsWith(`${entry}__`))
}

const ROLE = `You are a subagent: another agent has given you a task, and you work on it by yourself. Nobody answers questions. Your last message is the only thing that the other agent reads of your work: say in it what you found or did, with the facts and the file names that it needs.`

function promptOf(prompt: string | undefined, settings: Settings, tools: readonly string[]): string {
  const { workdir, additional_directories: additionalDirectories } = settings
  const places = { workdir, additionalDirectories }
  const base = prompt === undefined ? {} : { base: `${prompt}\n\n${tellDirectories(places)}` }
  return buildSystemPrompt({ ...places, tools, ...base, extensions: [ROLE], microagents: [] })
}
