/** Builds the hooks of a conversation. */
import { join } from 'node:path'
import type { ToolCalls } from '../../agent/tool-calls.ts'
import type { EventLog } from '../../events/event-log.ts'
import type { CallbacksOf } from '../../hooks/select-hooks.ts'
import type { SafeFetch } from '../../security/safe-fetch.ts'
import type { Lease } from '../../storage/lease/lease.ts'
import { endMarkedCommand } from '../../shell/processes/marked-processes.ts'
import { RegisteredHooks } from '../client-hooks/registered-hooks.ts'
import type { WaitingHooks } from '../client-hooks/waiting-hooks.ts'
import type { ConversationSecrets } from '../config/secrets.ts'
import type { ConversationShells } from '../../workspace/exec/conversation-shells.ts'
import type { LiveState } from '../live/live-state.ts'
import { BackgroundHooks } from './background-hooks.ts'
import { ConversationHooks } from './conversation-hooks.ts'
import { HookCaller } from './hook-caller.ts'
import type { ToolHookParts } from './tool-hooks.ts'

/** What the hooks of all conversations share. */
export type HookDeps = {
  /** Reaches the addresses that callbacks may have. */
  readonly fetch: Pick<SafeFetch, 'exchange' | 'refusal'>
  readonly userAgent: string
  /** Functions of the program that this server is part of. Asked at each point. */
  readonly callbacksOf?: CallbacksOf | undefined
  /** See `RunHooksDeps`. */
  readonly lease?: Lease | undefined
}

export type HookParts = {
  readonly log: EventLog
  readonly state: LiveState
  readonly shells: ConversationShells
  /** The requests to the clients that answer hooks. */
  readonly waitingHooks: WaitingHooks
  readonly secrets: ConversationSecrets
  /** The server's own directory for this conversation. */
  readonly directory: string
  readonly redact: (text: string) => string
  readonly isolation: 'bubblewrap' | 'none'
  readonly toolCalls: () => ToolCalls
  readonly onFault: (error: unknown) => void
}

const NO_CALLBACKS: CallbacksOf = () => NONE
const NONE: readonly never[] = []

export function buildHooks({ fetch, userAgent, callbacksOf, lease }: HookDeps, parts: HookParts): ConversationHooks {
  const { log, state, shells, secrets, directory, redact, isolation, waitingHooks, toolCalls, onFault } = parts
  const caller = new HookCaller({
    state,
    redact,
    callbacksOf: new RegisteredHooks(state, waitingHooks).after(callbacksOf ?? NO_CALLBACKS),
    shells: () => shells.current(),
    outputDirectory: join(directory, 'outputs'),
    // All processes end with the shell in a sandbox.
    endLeft: isolation === 'none' ? (id) => endMarkedCommand(log.conversationId, id) : undefined,
    fetch,
    userAgent,
    lease,
    credentialsOf: (url) => secrets.hookCredentials(url),
  })
  const emit = async (drafts: Parameters<EventLog['append']>[0]) => void (await log.append(drafts))
  const background = new BackgroundHooks(onFault)
  const follow: ToolHookParts['follow'] = (listener) =>
    log.subscribe({
      onEvents: (events) => {
        for (const { event } of events) listener(event)
      },
    })
  const hooks = new ConversationHooks({ caller, state, toolCalls, emit, follow, redact, background })
  follow((event) => hooks.watching.stored(event))
  return hooks
}
