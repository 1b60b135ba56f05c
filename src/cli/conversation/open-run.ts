/** Opens what the chat and a run without it work with: settings, host and conversation. */
import { HomeGrants } from '../../access/home-access.ts'
import type { ConversationView } from '../../contract/conversation.ts'
import type { Info } from '../../contract/server.ts'
import { UsageError } from '../command-line/usage-error.ts'
import type { BeforeOpening, OpenedConversation } from './open-conversation.ts'
import { bodyOfNew, openConversation } from './open-conversation.ts'
import type { AgentHost } from './open-host.ts'
import { infoOf, openHost } from './open-host.ts'
import { endPreparation } from '../../process-settings.ts'
import type { HomeSettings } from '../settings/home-settings.ts'
import type { RunSettings } from '../settings/run-settings.ts'

type RunRequest = {
  /** URL of a remote server. */
  readonly server: string | undefined
  readonly settings: RunSettings
  readonly check?: ((info: Info) => void) | undefined
  readonly before?: BeforeOpening
}

export type OpenedRun = OpenedConversation & {
  readonly host: AgentHost
  readonly info: Info
  /** Creates another conversation with the same settings. */
  readonly createConversation: () => Promise<ConversationView>
}

/**
 * `check` and `before` can throw before a conversation is created or changed. Closes everything it has opened if a later step fails.
 * The caller closes `host`.
 */
export async function openRun(
  { server, settings, check, before }: RunRequest,
  signal: AbortSignal,
): Promise<OpenedRun> {
  await using stack = new AsyncDisposableStack()
  const { host, info, home, grants } = await openServer({ server, settings, check }, stack, signal)
  const openedConversation = await openConversation(host.client, settings.conversation, settings.names, {
    ...before,
    signal,
  })
  // This precedes the first run: its shells see what is granted when they start.
  if (openedConversation.isResumed || home.access) await grants?.open(openedConversation.view.id)
  endPreparation()
  const heldStack = stack.move()
  return {
    ...openedConversation,
    host: { ...host, [Symbol.asyncDispose]: () => heldStack.disposeAsync() },
    info,
    notices: [...settings.notices, ...home.notices, ...cacheNotice(home, info), ...openedConversation.notices],
    async createConversation() {
      const view = await host.client.conversations.create(bodyOfNew(settings.conversation))
      if (home.access) await grants?.open(view.id)
      return view
    },
  }
}

/** Throws what `check` throws. What must be closed is added to `stack`. */
export async function openServer(
  { server, settings, check }: Omit<RunRequest, 'before'>,
  stack: AsyncDisposableStack,
  signal: AbortSignal,
) {
  const { dataDir, serverKey: apiKey, secretFiles, serverSettings } = settings
  const host = stack.use(await openHost({ server, apiKey, dataDir, secretFiles, settings: serverSettings, signal }))
  const info = await infoOf(host, signal)
  check?.(info)
  const home = homeFor(host, settings)
  const grants = server === undefined ? stack.use(new HomeGrants(dataDir, home.access)) : undefined
  return { host, info, home, grants }
}

/** A server for others shows nobody the home of its user. Throws a `UsageError` if it was asked for. */
function homeFor({ isPublic }: AgentHost, { home, dataDir }: RunSettings): Pick<HomeSettings, 'access' | 'notices'> {
  if (!isPublic || !home.access) return home
  const why = `agent-server serve runs the agents of ${dataDir}, and shows no agent your home`
  if (home.isRequested) throw new UsageError(`${why}; stop it, or set OPENHANDS_DATA_DIR to another directory.`)
  return { access: undefined, notices: [`${why}: sandbox of the settings file has no effect.`] }
}

/** Commands have the caches of the person then. */
const cacheNotice = ({ access }: Pick<HomeSettings, 'access'>, { isolation }: Info): string[] =>
  access?.packageCache && isolation === 'none' ? ['the package cache has no effect without a sandbox.'] : []

export function describeSandbox({ isolation }: Info, server: string | undefined): string {
  const where = server === undefined ? 'on this machine' : `at ${server}`
  return isolation === 'none'
    ? `warning: commands run ${where} without a sandbox, with the rights of the user that runs them.`
    : `commands run ${where} in a sandbox (${isolation}).`
}
