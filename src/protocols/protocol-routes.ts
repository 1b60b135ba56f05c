/** The protocols besides the API, by the names that settings have for them. Without its line and its folder, one is not spoken. */
import type { Protocol } from './shared/protocol.ts'

const PROTOCOLS: Readonly<Record<string, () => Promise<Protocol>>> = {
  openai: async () => (await import('./openai/routes.ts')).OPENAI,
  'ai-sdk': async () => (await import('./ai-sdk/routes.ts')).AI_SDK,
  'ag-ui': async () => (await import('./ag-ui/ag-ui-routes.ts')).AG_UI,
  mcp: async () => (await import('./mcp/mcp-routes.ts')).MCP,
  acp: async () => (await import('./acp/acp-routes.ts')).ACP,
  a2a: async () => (await import('./a2a/a2a-routes.ts')).A2A,
}

export const PROTOCOL_NAMES: readonly string[] = Object.keys(PROTOCOLS)

/** Returns undefined for a name that is not a protocol of this server. */
export const loadProtocol = async (name: string): Promise<Protocol | undefined> =>
  Object.hasOwn(PROTOCOLS, name) ? await PROTOCOLS[name]?.() : undefined
