/** What is checked of each setting beyond its schema, the same at a create and at an update. */
import type { CreateConversation, UpdateConfig } from '../contract/conversation.ts'
import { eachHook } from '../contract/hooks/hooks.ts'
import type { NameIn } from '../contract/setting-fields.ts'
import { checkPolicy } from '../network/server-policy.ts'
import type { Redactor } from '../security/redaction/redactor.ts'
import { refuseSecretsIn } from '../security/refuse-secrets.ts'
import { checkClientTools } from './client-tools/check-client-tools.ts'
import type { ConversationDeps } from './dependencies.ts'
import { checkHooks } from './hooks/hook-settings.ts'
import { checkSnapshots } from '../workspace/snapshots/git-store.ts'
import { checkOutputSchema } from './config/check-output-schema.ts'

type Context = {
  readonly deps: Pick<ConversationDeps, 'hooks' | 'limits' | 'network'>
  readonly redactor: Pick<Redactor, 'redact' | 'redactAnyCase'>
}

/** Throws a `Problem` if this server does not allow the value. */
type Check<T> = (value: NonNullable<T>, context: Context) => void | Promise<void>

/** What a create and an update may send. */
type SentSettings = CreateConversation & UpdateConfig

/** `null`: its schema is enough, or what reads it checks it. */
const CHECKS: { readonly [K in NameIn<'create'> | NameIn<'update'>]: Check<SentSettings[K]> | null } = {
  title: null,
  labels: null,
  archived: null,
  generate_title: null,
  title_model: null,
  user_id: null,
  profile: null,
  external_id: null,
  metadata: null,
  workdir: null,
  env: null,
  additional_directories: null,
  llm_config: null,
  tools: null,
  max_iteration_per_run: null,
  max_seconds_per_run: null,
  max_tokens_per_run: null,
  max_budget_usd: null,
  allow_unpriced: null,
  compaction: null,
  output_schema: (schema) => checkOutputSchema(schema),
  confirmation_mode: null,
  permission_mode: null,
  permission_rules: null,
  hooks: (hooks, { deps, redactor }) => checkHooks([...eachHook(hooks)], deps.hooks.fetch, redactor),
  enable_message_rewrite_hooks: null,
  microagents: null,
  resume_on_start: null,
  visualize: null,
  file_checkpointing: (isOn) => checkSnapshots(isOn),
  limits: (limits, { deps }) => deps.limits.check(limits),
  tool_config: null,
  network: (policy, { deps, redactor }) => {
    refuseSecretsIn({ network: policy }, redactor.redactAnyCase)
    checkPolicy(policy, deps.network.server)
  },
  mcp: null,
  client_tools: (tools) => checkClientTools(tools),
  agents: null,
  subagent_limits: null,
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
