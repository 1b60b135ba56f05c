/** `agent-server chat` and `connect`: starts the interactive chat, or a run without it. */
import { join } from 'node:path'
import type { RunInvocation } from './command-line/run-options.ts'
import { UsageError } from './command-line/usage-error.ts'
import { newConversation } from './settings/conversation-settings.ts'
import { canMoveCursor, wantsColor } from '../config/config.ts'
import { describeSandbox, openRun } from './open-run.ts'
import { readRunSettings } from './settings/run-settings.ts'

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

async function runChat(invocation: RunInvocation): Promise<number> {
  if (!canMoveCursor())
    throw new UsageError('this terminal (TERM=dumb) cannot show the chat; use --no-tui for a single answer.')
  const directory = process.cwd()
  const { startChat } = await import('./chat/start-chat.ts')
  const { server } = invocation
  const { signal } = new AbortController()
  const settings = await readRunSettings(invocation, signal)
  const opened = await openRun({ server, settings }, signal)
  await using host = opened.host
  const { view, info } = opened
  return await startChat({
    client: host.client,
    conversation: host.client.conversation(view.id),
    view,
    isResumed: opened.isResumed,
    createConversation: () => host.client.conversations.create(newConversation(settings.conversation)),
    names: opened.names,
    info,
    server,
    directory,
    historyPath: join(settings.dataDir, 'chat-history'),
    prompt: invocation.prompt,
    maxSteps: invocation.maxSteps,
    forcesTool: invocation.toolChoice === 'required',
    permissionMode: view.state.permission_mode,
    color: wantsColor(),
    notices: [describeSandbox(info, server), ...opened.notices],
  })
}
