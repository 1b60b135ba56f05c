/** Gives the agent the tools that a client executes. */
import type { Access } from '../../access/access.ts'
import type { ClientTool } from '../../contract/client-tools/client-tool.ts'
import { ClientTools } from '../../contract/client-tools/client-tool.ts'
import type { UpdateConfig } from '../../contract/conversation.ts'
import { isServerTool } from '../../conversations/client-tools/check-client-tools.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import { mayConfigure } from '../../http/guards/limited-requests.ts'
import { canonicalJson } from '../../lib/json/canonical-json.ts'
import { invalid, parseField } from './fields.ts'

/** Parses the tools of a client, which its protocol calls `tools`. Throws a `Problem` that names the field. */
export function parseTools(givenTools: unknown): ClientTool[] {
  const tools = parseField(ClientTools, givenTools, 'tools')
  const at = tools.findIndex(({ name }) => isServerTool(name))
  if (at >= 0) throw invalid(`tools.${at}.name`, 'the server has a tool with this name')
  return tools
}

/** Returns the change that gives the agent these functions; undefined if it has them. Throws a `Problem` if the key may not do it. */
export function toolsUpdate(
  { state }: Conversation,
  access: Access,
  tools: readonly ClientTool[],
): UpdateConfig | undefined {
  const current = (state.settings.client_tools ?? []).map(({ name, description, input_schema }) => {
    return { name, description, input_schema }
  })
  if (canonicalJson(current) === canonicalJson(tools)) return undefined
  const update = { client_tools: [...tools] }
  mayConfigure(access, update)
  return update
}

/** Changes the tools of the conversation to those of a request. */
export async function useTools(
  conversation: Conversation,
  access: Access,
  tools: readonly ClientTool[],
): Promise<void> {
  const update = toolsUpdate(conversation, access, tools)
  if (update) await conversation.configure(update)
}

/**
 * The options of a run for the tools of the client. It executes them itself: it needs no decision about its own tools. Rules that ask or
 * deny hold.
 */
export function optionsForTools(names: readonly string[]): { readonly allowed_tools?: string[] } {
  const allowed_tools = names.filter((name) => /^[A-Za-z_]/.test(name))
  return allowed_tools.length > 0 ? { allowed_tools } : {}
}
