/** The `hooks` of a settings file: the only place where they would be connected to a conversation. */
import { NOT_TRUSTED } from './ignored-settings.ts'
import type { SourceContext } from './load-context.ts'

export function takeHooks({ ignored, isTrusted }: SourceContext, path: string, hooks: unknown): void {
  if (hooks === undefined) return
  ignored.add('hooks', path, isTrusted ? 'This version does not run hooks of settings files.' : NOT_TRUSTED)
}
