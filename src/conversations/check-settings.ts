/** What is checked of each setting beyond its schema, the same at a create and at an update. */
import type { CreateConversation, UpdateConfig } from '../contract/conversation.ts'
import { eachHook } from '../contract/hooks/hooks.ts'
import type { DerivedName, NameIn } from '../contract/setting-fields.ts'
import { checkPolicy } from '../network/server-policy.ts'
import { checkClientTools } from './client-tools/check-client-tools.ts'
import type { ConversationDeps } from './dependencies.ts'
import { checkHooks } from './hooks/hook-settings.ts'
import { checkSnapshots } from '../workspace/snapshots/git-store.ts'
import { checkOutputSchema } from './config/check-output-schema.ts'

type Context = {
  readonly deps: Pick<ConversationDeps, 'hooks' | 'limits' | 'network'>
  readonly redact: (text: string) => string
}

/** Throws a `Problem` if this server does not allow the value. */
type Check<T> = (value: NonNullable<T>, context: Context) => void | Promise<void>

type NewName = NameIn<'create'>
type DerivedSetting = NewName & DerivedName

/**
 * `null`: what reads it checks it. A setting that is stored as it was sent needs an entry only if its schema is not enough:
 * `settings.ts` alone decides about all others.
 */
const CHECKS: { readonly [K in DerivedSetting]: Check<CreateConversation[K]> | null } & {
  readonly [K in Exclude<NewName, DerivedSetting>]?: Check<CreateConversation[K]>
} = {
  workdir: null,
  additional_directories: null,
  llm_config: null,
  tools: null,
  output_schema: (schema) => checkOutputSchema(schema),
  permission_mode: null,
  permission_rules: null,
  hooks: (hooks, { deps, redact }) => checkHooks([...eachHook(hooks)], deps.hooks.fetch, redact),
  file_checkpointing: (isOn) => checkSnapshots(isOn),
  limits: (limits, { deps }) => deps.limits.check(limits),
  network: (policy, { deps }) => checkPolicy(policy, deps.network.server),
  mcp: null,
  client_tools: (tools) => checkClientTools(tools),
  agents: null,
}

/** Throws a `Problem` for the first setting of a request that this server does not allow. */
export async function checkSettings(request: CreateConversation | UpdateConfig, context: Context): Promise<void> {
  const sentValues: Readonly<Record<string, unknown>> = request
  for (const [name, check] of Object.entries(CHECKS)) {
    const value = sentValues[name]
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- its schema has accepted it
    if (check && value !== undefined && value !== null) await check(value as never, context)
  }
}
