/** `agent-server chat` and `connect`: opens the host and the conversation, and starts the chat or a run without it. */
import type { Info } from '../contract/server.ts'
import type { RunInvocation } from './command-line/run-options.ts'
import { UsageError } from './command-line/usage-error.ts'
import { newConversation } from './conversation/conversation-settings.ts'
import type { OpenedConversation } from './conversation/open-conversation.ts'
import { openConversation } from './conversation/open-conversation.ts'
import { loadChat } from './load-chat.ts'
import type { Host } from './open-host.ts'
import { openHost } from './open-host.ts'
import type { RunSettings } from './settings/run-settings.ts'
import { readRunSettings } from './settings/run-settings.ts'

/** What both the chat and a run without it work with. */
export type Opened = OpenedConversation & {
  readonly host: Host
  readonly info: Info
  readonly settings: RunSettings
}

/** Returns the exit code. */
export async function run(invocation: RunInvocation): Promise<number> {
  if (invocation.isHeadless) {
    const { runHeadless } = await import('./headless/run-headless.ts')
    return await runHeadless(invocation)
  }
  if (!process.stdin.isTTY || !process.stdout.isTTY)
    throw new UsageError('the chat needs a terminal; use --no-tui for a single answer.')
  return await runChat(invocation)
}

/** Closes everything it has opened if a later step fails. The caller closes `host`. */
export async function openRun(invocation: RunInvocation, signal: AbortSignal): Promise<Opened> {
  const settings = await readRunSettings(invocation)
  const { server } = invocation
  const { dataDir, serverKey } = settings
  const host = await openHost({ server, apiKey: serverKey, dataDir, signal })
  try {
    const info = await host.client.info({ signal })
    const opened = await openConversation(host.client, settings.conversation, signal)
    return { ...opened, host, info, settings, notices: [...settings.notices, ...opened.notices] }
  } catch (error) {
    await host[Symbol.asyncDispose]()
    throw error
  }
}

async function runChat(invocation: RunInvocation): Promise<number> {
  const startChat = await loadChat()
  const opened = await openRun(invocation, new AbortController().signal)
  await using host = opened.host
  const { view, info, settings } = opened
  return await startChat({
    client: host.client,
    conversation: host.client.conversation(view.id),
    view,
    isResumed: opened.isResumed,
    createConversation: () => host.client.conversations.create(newConversation(settings.conversation)),
    info,
    server: invocation.server,
    prompt: invocation.prompt,
    maxSteps: invocation.maxSteps,
    forcesTool: invocation.toolChoice === 'required',
    permissionMode: view.state.permission_mode,
    color: !process.env.NO_COLOR,
    notices: [describeSandbox(info, invocation.server), ...opened.notices],
  })
}

export function describeSandbox({ isolation }: Info, server: string | undefined): string {
  const where = server === undefined ? 'on this machine' : `at ${server}`
  return isolation === 'none'
    ? `warning: commands run ${where} without a sandbox, with the rights of the user that runs them.`
    : `commands run ${where} in a sandbox (${isolation}).`
}
