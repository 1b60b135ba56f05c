/** Has the server call the hooks of a query that are functions: itself, or by asking this process. */
import type { ServerLink } from './server-link.ts'
import type { FunctionHook } from '../options/hooks-option.ts'
import type { AskedFunctionsOptions } from '../hooks/asked-functions.ts'
import { AskedFunctions } from '../hooks/asked-functions.ts'

/** Removes them when it is disposed. */
export async function attachHooks(
  link: ServerLink,
  hooks: readonly FunctionHook[],
  options: AskedFunctionsOptions,
): Promise<AsyncDisposable> {
  if (hooks.length === 0) return { async [Symbol.asyncDispose]() {} }
  const here = link.callbackHooks
  if (!here) return await AskedFunctions.register(hooks, options)
  const remove = here.add(options.conversation.id, hooks)
  return { [Symbol.asyncDispose]: async () => remove() }
}
