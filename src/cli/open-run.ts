/** Opens what the chat and a run without it work with: settings, host and conversation. */
import type { Info } from '../contract/server.ts'
import type { BeforeOpening, OpenedConversation } from './conversation/open-conversation.ts'
import { openConversation } from './conversation/open-conversation.ts'
import type { AgentHost } from './open-host.ts'
import { infoOf, openHost } from './open-host.ts'
import { endPreparation } from '../process-settings.ts'
import type { RunSettings } from './settings/run-settings.ts'

type RunRequest = {
  /** URL of a remote server. */
  readonly server: string | undefined
  readonly settings: RunSettings
  readonly check?: (info: Info) => void
  readonly before?: BeforeOpening
}

export type Opened = OpenedConversation & {
  readonly host: AgentHost
  readonly info: Info
}

/**
 * `check` and `before` can throw before a conversation is created or changed. Closes everything it has opened if a later step fails.
 * The caller closes `host`.
 */
export async function openRun({ server, settings, check, before }: RunRequest, signal: AbortSignal): Promise<Opened> {
  const { dataDir, serverKey, secretFiles } = settings
  const host = await openHost({ server, apiKey: serverKey, dataDir, secretFiles, signal })
  try {
    const info = await infoOf(host, signal)
    check?.(info)
    const opened = await openConversation(host.client, settings.conversation, settings.names, { ...before, signal })
    endPreparation()
    return { ...opened, host, info, notices: [...settings.notices, ...opened.notices] }
  } catch (error) {
    await host[Symbol.asyncDispose]()
    throw error
  }
}

export function describeSandbox({ isolation }: Info, server: string | undefined): string {
  const where = server === undefined ? 'on this machine' : `at ${server}`
  return isolation === 'none'
    ? `warning: commands run ${where} without a sandbox, with the rights of the user that runs them.`
    : `commands run ${where} in a sandbox (${isolation}).`
}
