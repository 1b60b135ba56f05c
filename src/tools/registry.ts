/** Which tools there are, by the names clients may use for them. */
import { Problem } from '../contract/problem.ts'

export const TOOL_NAMES = ['Bash'] as const
export type ToolName = (typeof TOOL_NAMES)[number]

/** What a conversation gets that names none. */
export const DEFAULT_TOOLS: readonly ToolName[] = ['Bash']

/** Other servers' names for the same tools, so that their clients need not change. */
const ALIASES: Readonly<Record<string, ToolName>> = { execute_bash: 'Bash', BashTool: 'Bash' }

/** Canonical names in the order given, each once. Throws a `Problem` that says which is unknown. */
export function resolveToolNames(names: readonly string[]): ToolName[] {
  return [...new Set(names.map(resolveToolName))]
}

function resolveToolName(name: string, at: number): ToolName {
  const found = TOOL_NAMES.find((known) => known === name) ?? (Object.hasOwn(ALIASES, name) ? ALIASES[name] : undefined)
  if (found) return found
  throw new Problem(
    'invalid_request',
    `tools.${at} is no tool of this server; the tools are ${TOOL_NAMES.join(', ')}.`,
    {
      details: { tools: [...TOOL_NAMES] },
    },
  )
}
