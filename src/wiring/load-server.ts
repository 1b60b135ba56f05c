/** Loads the code of the server in parts: between them the process answers connections, and opens its services. */
import { setImmediate as turn } from 'node:timers/promises'
import type { readConfig, ensureWritable } from '../config/config.ts'
import type { startServer } from './start-server.ts'

type Part = () => Promise<unknown>

/** What checks the settings. */
const CONFIG: readonly Part[] = [
  () => import('../contract/values/llm-config.ts'),
  () => import('../contract/values/network.ts'),
  () => import('../security/public-address.ts'),
]

/** What the services need, from the bottom up. */
const SERVICES: readonly Part[] = [
  () => import('../contract/values/permission.ts'),
  () => import('../contract/values/message.ts'),
  () => import('../contract/project/project-settings.ts'),
  () => import('../contract/mcp/mcp-server.ts'),
  () => import('../contract/events/conversation-events.ts'),
  () => import('../contract/hooks/hooks.ts'),
  () => import('node:crypto'),
  () => import('../contract/events/event.ts'),
  () => import('../contract/conversation.ts'),
  () => import('../telemetry/logger.ts'),
]

/** What takes longest of the rest. */
const SERVER: readonly Part[] = [
  () => import('node:http'),
  () => import('../contract/events-api.ts'),
  () => import('../tools/tool.ts'),
  () => import('../http/server.ts'),
  () => import('../conversations/manager.ts'),
]

type ConfigModule = { readonly readConfig: typeof readConfig; readonly ensureWritable: typeof ensureWritable }

export async function loadConfig(): Promise<ConfigModule> {
  await loadParts(CONFIG)
  return await import('../config/config.ts')
}

/** Call it before `app.ts` is imported, which would load all of this without a turn for answers. */
export const loadServices = (): Promise<void> => loadParts(SERVICES)

export async function loadServer(): Promise<{ readonly startServer: typeof startServer }> {
  await loadParts(SERVER)
  return await import('./start-server.ts')
}

async function loadParts(parts: readonly Part[]): Promise<void> {
  for (const load of parts) {
    await turn()
    await load()
  }
  await turn()
}
