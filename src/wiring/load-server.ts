/** Loads the code of the server in parts: between them the process answers connections, and opens its services. */
import { setImmediate as turn } from 'node:timers/promises'
import type { startServer } from './start-server.ts'

/** What takes longest, from the bottom up. */
const PARTS: readonly (() => Promise<unknown>)[] = [
  () => import('../contract/message.ts'),
  () => import('../contract/mcp/mcp-server.ts'),
  () => import('../contract/events/event.ts'),
  () => import('../contract/conversation.ts'),
  () => import('../contract/events/events-api.ts'),
  () => import('../tools/tool.ts'),
  () => import('../http/server.ts'),
  () => import('../conversations/registry/manager.ts'),
]

export async function loadServer(): Promise<{ readonly startServer: typeof startServer }> {
  for (const load of PARTS) {
    await turn()
    await load()
  }
  await turn()
  return await import('./start-server.ts')
}
