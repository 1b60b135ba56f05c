/** Reads the `hooks` of a settings file, which have an effect only if the file is trusted. */
import { Hooks } from '../contract/hooks/hooks.ts'
import { describeIssue } from '../contract/problem.ts'
import { NOT_TRUSTED } from './ignored-settings.ts'
import type { SourceContext } from './load-context.ts'

const MAX_ISSUES = 5

/** Undefined without hooks that have an effect. Returns what is wrong with hooks that cannot be used. */
export function readHooks(
  { ignored, isTrusted }: SourceContext,
  path: string,
  setting: unknown,
): Hooks | { readonly fault: string } | undefined {
  if (setting === undefined) return undefined
  if (!isTrusted) {
    ignored.add('hooks', path, NOT_TRUSTED)
    return undefined
  }
  const parseResult = Hooks.safeParse(setting)
  if (parseResult.success) return parseResult.data
  const issues = parseResult.error.issues.slice(0, MAX_ISSUES).map((issue) => describeIssue(issue, ['hooks']))
  return { fault: issues.map(({ path: field, message }) => `${field}: ${message}.`).join(' ') }
}
