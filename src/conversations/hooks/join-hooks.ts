/** Joins the hooks of a request for a new conversation with those of its settings files, and stores their secrets. */
import type { CreateConversation } from '../../contract/conversation.ts'
import { HOOK_POINTS } from '../../contract/hooks/hook-point.ts'
import { eachHook, Hooks } from '../../contract/hooks/hooks.ts'
import { describeIssue, Problem } from '../../contract/problem.ts'
import type { LoadedProject } from '../../project/load-project.ts'
import type { Redactor } from '../../security/redaction/redactor.ts'
import type { ConversationSecrets } from '../config/secrets.ts'
import type { HookDeps } from './build-hooks.ts'
import { checkHooks, credentialsOf, hookWarnings } from './hook-settings.ts'

export type JoinOptions = {
  readonly request: CreateConversation
  readonly rawProject: LoadedProject | undefined
  readonly secrets: ConversationSecrets
  readonly redactor: Redactor
  /** Throws a `Problem` if the client may not use these hooks. */
  readonly mayUse: (hooks: Hooks) => void
}

export type JoinedHooks = { readonly hooks: Hooks | undefined; readonly warnings: readonly string[] }

/** Throws a `Problem` that names the file and the field of a hook that cannot be used. */
export async function joinHooks(
  { fetch }: Pick<HookDeps, 'fetch'>,
  { request, rawProject, secrets, redactor, mayUse }: JoinOptions,
): Promise<JoinedHooks> {
  const ofRequest = [...eachHook(request.hooks ?? {})]
  const files = rawProject?.hooks ?? []
  if (files.length === 0) return { hooks: request.hooks, warnings: hookWarnings(ofRequest) }
  const hooks = joinAll([...files.map((file) => file.hooks), ...(request.hooks ? [request.hooks] : [])])
  mayUse(hooks)
  const ofFiles = files.flatMap((file) => [...eachHook(file.hooks, `setting_sources: ${file.path}: hooks`)])
  const all = [...ofFiles, ...ofRequest]
  const credentials = credentialsOf(all, () => undefined)
  // Texts of the project that repeat the secrets are redacted from here on.
  await secrets.updateHooks({ add: credentials })
  await checkHooks(all, fetch, redactor)
  return { hooks, warnings: hookWarnings(all) }
}

/** Joins them in this order: of several changed inputs, that of the request counts. */
function joinAll(all: readonly Hooks[]): Hooks {
  const points = HOOK_POINTS.map((point) => [point, all.flatMap((hooks) => hooks[point] ?? [])] as const)
  const parseResult = Hooks.safeParse(Object.fromEntries(points.filter(([, groups]) => groups.length > 0)))
  if (parseResult.success) return parseResult.data
  const [fault] = parseResult.error.issues.map((issue) => describeIssue(issue, ['hooks']))
  throw new Problem(
    'invalid_request',
    `setting_sources: with the hooks of the settings files, ${fault?.path ?? 'hooks'}: ${fault?.message ?? ''}. Remove some.`,
  )
}
