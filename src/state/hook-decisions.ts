/** What hooks have decided, as intents get it. */
import type { EventDraft } from '../contract/events/event.ts'

export type HookDraft = Extract<EventDraft, { type: 'HookEvent' }>

/** What hooks say about a message: the events to store with it, and what the model reads after it. */
export type PromptHooks = { readonly events: readonly HookDraft[]; readonly context?: string }

export type HookDecision = {
  readonly toolUseId: string
  readonly behavior: 'allow' | 'deny'
  readonly updatedInput?: Readonly<Record<string, unknown>> | undefined
  readonly message?: string | undefined
  readonly decidedBy: 'hook' | 'callback'
}

/** `hooksAt`: the `hooksAt` of the state when the hooks were called. Of hooks that were replaced since, nothing counts. */
export type HookDecisions = { readonly hooksAt: number; readonly decisions: readonly HookDecision[] }
