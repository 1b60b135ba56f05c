/** The hooks that clients have registered, as functions that ask them: the runner of hooks calls them like any other. */
import type { ClientHookPoints, StoredClientHooks } from '../../contract/hooks/client-hooks.ts'
import { HOOK_POINTS } from '../../contract/hooks/hook-point.ts'
import { DEFAULT_HOOK_TIMEOUT_S } from '../../contract/hooks/hooks.ts'
import type { CallbackHook, CallbacksOf } from '../../hooks/select-hooks.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import type { LiveState } from '../live/live-state.ts'
import type { RegisteredHook, WaitingHooks } from './waiting-hooks.ts'

export class RegisteredHooks {
  readonly #state: LiveState
  readonly #waiting: WaitingHooks
  #storedHooks: StoredClientHooks | undefined
  #hooks: readonly CallbackHook[] = []

  constructor(state: LiveState, waiting: WaitingHooks) {
    this.#state = state
    this.#waiting = waiting
  }

  /** Returns the hooks of this process, followed by those of the clients. */
  after(inProcess: CallbacksOf): CallbacksOf {
    return (id) => {
      const before = inProcess(id)
      const hooks = this.#current()
      return hooks.length > 0 ? [...before, ...hooks] : before
    }
  }

  #current(): readonly CallbackHook[] {
    const { client_hooks: registeredHooks } = this.#state.current.settings
    if (registeredHooks !== this.#storedHooks) {
      this.#storedHooks = registeredHooks
      this.#hooks = inOrder(registeredHooks ?? {}).flatMap(([client, { hooks }]) => this.#hooksOf(client, hooks))
    }
    return this.#hooks
  }

  /** The conversation ends, and takes no answers any more. */
  #notify(hook: RegisteredHook): CallbackHook['call'] {
    return async (payload) => {
      this.#waiting.notify(hook, payload)
      return {}
    }
  }

  #hooksOf(client: string, hooks: ClientHookPoints): CallbackHook[] {
    const late = () =>
      this.#waiting.isConnected(client)
        ? ''
        : ` (its client ${client} is not connected: connect it, or remove its hooks with DELETE client-hooks/${client})`
    return HOOK_POINTS.flatMap((point) =>
      (hooks[point] ?? []).flatMap(({ matcher, hooks: group }) =>
        group.map(({ id, timeout, on_failure }): CallbackHook => {
          const hook = { client, id, point, timeoutMs: (timeout ?? DEFAULT_HOOK_TIMEOUT_S) * 1000 }
          return {
            type: 'callback',
            point,
            name: id,
            ...withoutUndefined({ matcher, timeout, on_failure }),
            call:
              point === 'SessionEnd'
                ? this.#notify(hook)
                : (...callArguments) => this.#waiting.request(hook, ...callArguments),
            whyLate: late,
            expect: () => this.#waiting.expect(client),
          }
        }),
      ),
    )
  }
}

/** Returns the clients by the time of their registration. The keys of an object are in another order if some of them are numbers. */
export const inOrder = (registeredHooks: StoredClientHooks) =>
  Object.entries(registeredHooks).sort(([, one], [, other]) => one.registered_at.localeCompare(other.registered_at))
