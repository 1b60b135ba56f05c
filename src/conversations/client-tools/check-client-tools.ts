/** Checks the client tools of a request, and redacts what they tell the model. */
import type { ClientTool } from '../../contract/client-tools/client-tool.ts'
import { currentTool } from '../../contract/values/earlier-tools.ts'
import { Problem } from '../../contract/problem.ts'
import { mapStrings } from '../../lib/json/map-strings.ts'
import { canonicalName, TOOL_NAMES } from '../../tools/registry.ts'

/** Tools of the server that conversations with MCP servers have. */
const OF_MCP = ['ToolSearch', 'ListMcpResources', 'ReadMcpResource', 'ListMcpPrompts', 'GetMcpPrompt']

const TAKEN: ReadonlySet<string> = new Set([...TOOL_NAMES, ...OF_MCP])

/** True for the name of a tool of the server, also another one that it has or had. */
export const isServerTool = (name: string): boolean => TAKEN.has(currentTool(canonicalName(name)))

/** Throws a `Problem` for the name of a tool of the server: rules and models could not tell them apart. */
export function checkClientTools(tools: readonly ClientTool[] = []): void {
  const at = tools.findIndex(({ name }) => isServerTool(name))
  if (at >= 0) throw new Problem('invalid_request', `client_tools.${at}.name: the server has a tool with this name.`)
}

/** Throws a `Problem` for a name that contains a secret: with another name the client would not know its tool. */
export function redactClientTools(tools: readonly ClientTool[], redact: (text: string) => string): ClientTool[] {
  const at = tools.findIndex(({ name }) => redact(name) !== name)
  if (at >= 0) throw new Problem('invalid_request', `client_tools.${at}.name: contains the value of a secret.`)
  return tools.map(({ description, input_schema, ...tool }) => ({
    ...tool,
    description: redact(description),
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- texts only: the shape stays
    input_schema: mapStrings(input_schema, redact) as ClientTool['input_schema'],
  }))
}
