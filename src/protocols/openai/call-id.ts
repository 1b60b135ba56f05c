/** The ids of calls of functions. A client that names nothing else finds the conversation by them. */

export type CallId = { readonly conversationId: string; readonly toolUseId: string }

export function formatCallId({ conversationId, toolUseId }: CallId): string {
  return `call_${conversationId.replaceAll('-', '')}_${toolUseId}`
}

/** Undefined for any other text. */
export function parseCallId(text: string): CallId | undefined {
  const [, hex, toolUseId] = /^call_([0-9a-f]{32})_(.+)$/s.exec(text) ?? []
  if (hex === undefined || toolUseId === undefined) return undefined
  const conversationId = hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
  return { conversationId, toolUseId }
}
