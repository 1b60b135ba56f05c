/** The hooks of queries that are functions: the server in this process asks here which ones a conversation has. */
import type { CallbackHook } from '../../hooks/select-hooks.ts'

const NONE: readonly CallbackHook[] = []

export class CallbackHooks {
  readonly #byConversation = new Map<string, readonly CallbackHook[]>()

  readonly of = (conversationId: string): readonly CallbackHook[] => this.#byConversation.get(conversationId) ?? NONE

  /** Returns a function that removes them again. */
  add(conversationId: string, hooks: readonly CallbackHook[]): () => void {
    if (hooks.length === 0) return () => {}
    this.#byConversation.set(conversationId, [...this.of(conversationId), ...hooks])
    return () => {
      const left = this.of(conversationId).filter((hook) => !hooks.includes(hook))
      if (left.length > 0) this.#byConversation.set(conversationId, left)
      else this.#byConversation.delete(conversationId)
    }
  }
}
