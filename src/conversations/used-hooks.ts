import type { HookDeps, HookParts } from './hooks/build-hooks.ts'
import { buildHooks } from './hooks/build-hooks.ts'
import type { ConversationHooks } from './hooks/conversation-hooks.ts'
import { Feature } from './agents/feature.ts'

/** The hooks of a conversation: those of its settings, of its clients, and of the program that this server is part of. */
export const usedHooks = (deps: HookDeps, parts: HookParts): Feature<ConversationHooks> =>
  new Feature(
    () => buildHooks(deps, parts),
    () => {
      const { hooks, client_hooks } = parts.state.current.settings
      return hooks !== undefined || client_hooks !== undefined || inProcess(deps, parts.log.conversationId)
    },
  )

const inProcess = ({ callbacksOf }: HookDeps, id: string) => (callbacksOf?.(id).length ?? 0) > 0
