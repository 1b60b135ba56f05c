/** What runs the agents of a program that speaks a protocol on standard input: a server in this process, or a remote one. */
import { endPreparation } from '../../process-settings.ts'
import type { ProgramHost } from '../../protocols/shared/program-host.ts'
import { MissingSetting } from '../../protocols/shared/program-host.ts'
import { continueStopped } from '../../sdk/session/stopped-session.ts'
import type { RunInvocation } from '../command-line/run-options.ts'
import { checkpointingOf } from '../conversation/open-conversation.ts'
import { describeSandbox, openServer } from '../conversation/open-run.ts'
import { changesOfResumed, newConversation } from '../settings/conversation-settings.ts'
import { readRunSettings } from '../settings/run-settings.ts'
import { sayError } from '../terminal/terminal.ts'

export type ProtocolHost = AsyncDisposable & ProgramHost

/** Throws a `MissingSetting`, or a `UsageError`. */
export async function openProtocolHost(invocation: RunInvocation, signal: AbortSignal): Promise<ProtocolHost> {
  const { server } = invocation
  const settings = await readSettings(invocation, signal)
  const { conversation, chat } = settings
  await using stack = new AsyncDisposableStack()
  const { host, info, home, grants } = await openServer({ server, settings }, stack, signal)
  for (const notice of [describeSandbox(info, server), ...settings.notices, ...home.notices])
    sayError(`agent-server: ${notice}\n`)
  endPreparation()
  const { client, continuesRuns } = host
  const heldStack = stack.move()
  return {
    client,
    models: chat.models ?? [],
    async create(cwd, mcp) {
      const own = {
        ...conversation,
        cwd,
        mcp: { ...conversation.mcp, ...mcp, mcpServers: { ...conversation.mcp?.mcpServers, ...mcp?.mcpServers } },
      }
      const view = await client.conversations.create({
        ...checkpointingOf(server === undefined ? own : { cwd: undefined }),
        ...newConversation(own),
      })
      if (home.access) await grants?.open(view.id)
      return view
    },
    async adopt(view) {
      await grants?.open(view.id)
      const changes = changesOfResumed({ ...conversation, ...NOT_GIVEN }, view)
      return changes ? await client.conversation(view.id).updateConfig(changes) : view
    },
    continueRun: continuesRuns ? (handle, after) => continueStopped(handle, { status: 'paused', after }) : undefined,
    [Symbol.asyncDispose]: () => heldStack.disposeAsync(),
  }
}

/** An earlier conversation keeps its own settings. */
const NOT_GIVEN = {
  hasCwd: false,
  addDirs: [],
  permissionMode: undefined,
  givenLlm: {},
  given: {},
  toolChoice: undefined,
}

async function readSettings(invocation: RunInvocation, signal: AbortSignal) {
  let isMissing = false
  const onMissing = async () => {
    isMissing = true
    return undefined
  }
  try {
    return await readRunSettings(invocation, signal, onMissing)
  } catch (error) {
    if (isMissing && error instanceof Error) throw new MissingSetting(error.message, { cause: error })
    throw error
  }
}
