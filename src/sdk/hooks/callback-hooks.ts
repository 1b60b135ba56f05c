/** The hooks of queries that are functions: the server in this process asks here which ones a conversation has. */
import type { CallbackHook } from '../../hooks/select-hooks.ts'
import { orAborted } from '../../lib/bounded-wait.ts'
import type { AttachedHooks } from './attached-hooks.ts'

const NONE: readonly CallbackHook[] = []

export class CallbackHooks {
  readonly #byConversation = new Map<string, readonly CallbackHook[]>()

  readonly of = (conversationId: string): readonly CallbackHook[] => this.#byConversation.get(conversationId) ?? NONE

  add(conversationId: string, givenHooks: readonly CallbackHook[]): AttachedHooks {
    const calls = new ExpectedCalls()
    const hooks = givenHooks.map((hook): CallbackHook => ({ ...hook, expect: () => calls.expect() }))
    this.#byConversation.set(conversationId, [...this.of(conversationId), ...hooks])
    return {
      settle: (signal) => calls.settle(signal),
      [Symbol.asyncDispose]: async () => {
        const otherHooks = this.of(conversationId).filter((hook) => !hooks.includes(hook))
        if (otherHooks.length > 0) this.#byConversation.set(conversationId, otherHooks)
        else this.#byConversation.delete(conversationId)
      },
    }
  }
}

/** Calls in the background that have not ended. */
class ExpectedCalls {
  #open = 0
  #ended = Promise.withResolvers<void>()

  expect(): () => void {
    this.#open++
    return () => {
      if (--this.#open > 0) return
      this.#ended.resolve()
      this.#ended = Promise.withResolvers()
    }
  }

  async settle(signal: AbortSignal): Promise<void> {
    while (this.#open > 0) await orAborted(this.#ended.promise, signal)
  }
}
