/** `agent-server chat` and `connect`: starts the interactive chat, or a run without it. */
import type { RunInvocation } from './command-line/run-options.ts'
import { UsageError } from './command-line/usage-error.ts'
import { newConversation } from './conversation/conversation-settings.ts'
import { wantsColor } from '../config/config.ts'
import { describeSandbox, openRun } from './open-run.ts'
import { readRunSettings } from './settings/run-settings.ts'
import { startRun } from './start-run.ts'

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
    info,
    server,
    prompt: invocation.prompt,
    maxSteps: invocation.maxSteps,
    forcesTool: invocation.toolChoice === 'required',
    runWithTool: async (conversation, content) => {
      await startRun(conversation, { content, maxSteps: invocation.maxSteps, forcesTool: true })
    },
    permissionMode: view.state.permission_mode,
    color: wantsColor(),
    notices: [describeSandbox(info, server), ...opened.notices],
  })
}
