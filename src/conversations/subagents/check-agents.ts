/** Checks the agents of a request, and returns them as they are stored: with the names that tools have here. */
import type { AgentDefinition, Agents } from '../../contract/agents/definition.ts'
import type { LlmConfig } from '../../contract/values/llm-config.ts'
import { Problem } from '../../contract/problem.ts'
import { parseRule } from '../../policy/rules/rule.ts'
import { canonicalName, TOOL_NAMES } from '../../tools/registry.ts'
import { originOf } from '../config/llm-origin.ts'
import { refuseSecretsIn } from '../../security/refuse-secrets.ts'
import { canonicalRule } from '../config/permission-rules.ts'

export type CheckedAgainst = {
  /** The model configuration of the conversation. */
  readonly llm: LlmConfig
  /** Names of its MCP servers. */
  readonly servers: readonly string[]
  /** Names of its client tools. */
  readonly clientTools: readonly string[]
  readonly redact: (text: string) => string
}

/** Throws a `Problem` that names the field. */
export function checkAgents(agents: Agents, against: CheckedAgainst): Agents {
  const checkedAgents = Object.entries(agents).map(([name, agent]) => {
    refuseSecretsIn({ [`agents, the name of one`]: name }, against.redact)
    return [name, checkAgent(`agents.${name}`, agent, against)] as const
  })
  return Object.fromEntries(checkedAgents)
}

function checkAgent(path: string, agent: AgentDefinition, against: CheckedAgainst): AgentDefinition {
  const { llm, redact } = against
  const { description, prompt, tools, disallowed_tools: rules, model, ...rest } = agent
  refuseSecretsIn({ [`${path}.tools`]: tools, [`${path}.disallowed_tools`]: rules, [`${path}.model`]: model }, redact)
  if (model !== undefined && model !== 'inherit' && originOf({ ...llm, model }) !== originOf(llm))
    throw invalid(
      `${path}.model: its endpoint is another one than that of the conversation. Use a model of the same endpoint.`,
    )
  return {
    ...rest,
    description: redact(description),
    prompt: redact(prompt),
    ...(tools && { tools: tools.map((name, at) => checkTool(`${path}.tools.${at}`, name, against)) }),
    ...(rules && { disallowed_tools: rules.map((text, at) => checkRule(`${path}.disallowed_tools.${at}`, text)) }),
    ...(model !== undefined && { model }),
  }
}

function checkTool(path: string, givenName: string, { servers, clientTools }: CheckedAgainst): string {
  const name = canonicalName(givenName)
  if (TOOL_NAMES.some((toolName) => toolName === name) || isOfServer(name, servers)) return name
  if (clientTools.includes(givenName)) return givenName
  throw new Problem(
    'invalid_request',
    `${path} is not a tool of this server; the tools are ${TOOL_NAMES.join(', ')}, and mcp__<server> of the servers in mcp.`,
    { details: { tools: [...TOOL_NAMES] } },
  )
}

const isOfServer = (name: string, servers: readonly string[]) =>
  servers.some((server) => name === `mcp__${server}` || name.startsWith(`mcp__${server}__`))

function checkRule(path: string, text: string): string {
  const rule = canonicalRule(text.trim())
  const parsedRule = parseRule(rule)
  if (typeof parsedRule === 'string') throw invalid(`${path}: ${parsedRule}`)
  return rule
}

const invalid = (message: string) => new Problem('invalid_request', message)

/** Tools are fixed when a conversation is created: agents that come later can be called only if `Task` is one of them. */
export function agentsWarning(agents: Agents | undefined, tools: readonly string[]): string[] {
  if (Object.keys(agents ?? {}).length === 0 || tools.includes('Task')) return []
  return [
    'This conversation has no tool Task, and cannot call the agents. Create it with agents, or with Task in tools.',
  ]
}
