/** `agent-server chat` and `connect`: starts the interactive chat, or a run without it. */
import { join } from 'node:path'
import type { RunInvocation } from './command-line/run-options.ts'
import { commandOfThisProcess } from './own-command.ts'
import { UsageError } from './command-line/usage-error.ts'
import type { ConversationView } from '../contract/conversation.ts'
import type { KnownPlaces } from './first-start/first-start.ts'
import type { BeforeOpening } from './conversation/open-conversation.ts'
import { useByOthers } from './conversation/refuse-resume.ts'
import { promptUser } from './settings/prompt-user.ts'
import { canMoveCursor, wantsColor } from '../config/config.ts'
import { describeSandbox, openRun } from './conversation/open-run.ts'
import { readRunSettings } from './settings/run-settings.ts'

/** Returns the exit code. `places`: other ones for models than those that are known, for tests. */
export async function run(invocation: RunInvocation, places?: KnownPlaces): Promise<number> {
  if (invocation.rewind !== undefined) {
    const { rewindSession } = await import('./headless/rewind-session.ts')
    await rewindSession(invocation, invocation.rewind)
    return 0
  }
  if (invocation.isHeadless) {
    const { runHeadless } = await import('./headless/run-headless.ts')
    return await runHeadless(invocation)
  }
  if (!process.stdin.isTTY || !process.stdout.isTTY)
    throw new UsageError('the chat needs a terminal; use --no-tui for a single answer.')
  return await runChat(invocation, places)
}

async function runChat(invocation: RunInvocation, places: KnownPlaces | undefined): Promise<number> {
  if (!canMoveCursor())
    throw new UsageError('this terminal (TERM=dumb) cannot show the chat; use --no-tui for a single answer.')
  const directory = process.cwd()
  const { startChat } = await import('./chat/start-chat.ts')
  const { server } = invocation
  const { signal } = new AbortController()
  const settings = await readRunSettings(invocation, signal, async (missing) => {
    const { createFirstStart } = await import('./first-start/first-start.ts')
    return await createFirstStart(places)(missing)
  })
  // A conversation that is named by its id is meant, also if another chat has it open. A copy disturbs nobody.
  const isNamed = typeof invocation.resume === 'object' || invocation.forks
  const before: BeforeOpening = {
    onResume: async (foundView) => (isNamed ? undefined : await confirmSharing(foundView)),
  }
  const openedRun = await openRun({ server, settings, before }, signal)
  await using host = openedRun.host
  const { view, info } = openedRun
  return await startChat({
    client: host.client,
    conversation: host.client.conversation(view.id),
    view,
    isResumed: openedRun.isResumed,
    createConversation: openedRun.createConversation,
    names: openedRun.names,
    info,
    server,
    directory,
    command: commandOfThisProcess(),
    historyPath: join(settings.dataDir, 'chat-history'),
    prompt: invocation.prompt,
    maxSteps: invocation.maxSteps,
    forcesTool: invocation.toolChoice === 'required',
    permissionMode: view.state.permission_mode,
    color: wantsColor(),
    settings: settings.chat,
    notices: [describeSandbox(info, server), ...openedRun.notices],
  })
}

async function confirmSharing(foundView: ConversationView): Promise<void> {
  const use = useByOthers(foundView)
  if (use === undefined) return
  const answer = await promptUser(`Conversation ${foundView.id} ${use}. Continue it here, too? [y/N] `)
  if (/^y(?:es)?$/i.test(answer ?? '')) return
  throw new UsageError('the conversation was left alone; leave --autoresume out for a new one.')
}
