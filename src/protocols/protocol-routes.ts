/** The protocols besides the API, by the names that settings have for them. Without its line and its folder, one is not spoken. */
import type { Protocol } from './shared/protocol.ts'

export const PROTOCOLS = {
  openai: async () => (await import('./openai/routes.ts')).OPENAI,
  'ai-sdk': async () => (await import('./ai-sdk/routes.ts')).AI_SDK,
  'ag-ui': async () => (await import('./ag-ui/ag-ui-routes.ts')).AG_UI,
  mcp: async () => (await import('./mcp/mcp-routes.ts')).MCP,
  acp: async () => (await import('./acp/acp-routes.ts')).ACP,
  a2a: async () => (await import('./a2a/a2a-routes.ts')).A2A,
} satisfies Readonly<Record<string, () => Promise<Protocol>>>

export type ProtocolName = keyof typeof PROTOCOLS

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the names of an object that nothing is added to
export const PROTOCOL_NAMES = Object.keys(PROTOCOLS) as ProtocolName[]

export const isProtocolName = (name: string): name is ProtocolName => Object.hasOwn(PROTOCOLS, name)
