/** The model of a fork that is not asked as its original is: checks it, and what of the stored credentials it keeps. */
import type { ForkConversation } from '../contract/conversation.ts'
import { refuseSecretsIn } from '../security/refuse-secrets.ts'
import type { Settings } from '../state/settings.ts'
import { withChanges } from '../state/settings.ts'
import type { SecretValues } from '../storage/storage.ts'
import { checkEndpoint } from './config/check-endpoint.ts'
import { changeOf } from './config/llm-origin.ts'
import { ConversationSecrets } from './config/secrets.ts'
import { changesOf, parseLlmUpdate, shownFields } from './config/settings.ts'
import { toolWarning } from './config/tool-warning.ts'
import type { ConversationDeps } from './dependencies.ts'
import { checkBudget } from './subagents/check-budget.ts'

type Original = { readonly settings: Settings; readonly secrets: SecretValues }

export type ForkLlm = {
  readonly llm_config: Settings['llm_config']
  readonly secrets: SecretValues
  readonly warnings: readonly string[]
  /** Redacts the new credentials, which another field of the request may repeat. */
  readonly redact: (text: string) => string
}

/** Stores nothing. Throws a `Problem` for what a change of the configuration would refuse, too. */
export async function readForkLlm(
  deps: ConversationDeps,
  id: string,
  { settings, secrets: keptSecrets }: Original,
  sentConfig: ForkConversation['llm_config'],
): Promise<ForkLlm> {
  const { llm_config: storedConfig } = settings
  if (!sentConfig) return { llm_config: storedConfig, secrets: keptSecrets, warnings: [], redact: (text) => text }
  const llm = parseLlmUpdate(sentConfig)
  const redactor = deps.createRedactor(id)
  const { redact } = redactor
  let secrets = keptSecrets
  const write = async (values: SecretValues) => void (secrets = values)
  const own = new ConversationSecrets({ redactor, keptValues: keptSecrets, write, id, logger: deps.logger })
  const change = changeOf(storedConfig, llm.config)
  // First: another field may repeat the new credentials.
  own.hideLlm(llm.config)
  refuseSecretsIn(shownFields(llm.config), redact)
  await checkEndpoint({ ...storedConfig, ...llm.config }, deps.models.endpointRefusal)
  const fields = { mcp: undefined, workdir: undefined, additionalDirectories: undefined, agents: undefined }
  const after = withChanges(settings, changesOf({ update: {}, llm: change, ...fields, redact }))
  const { llm_config } = after
  const warnings = [
    ...llm.warnings,
    ...toolWarning(llm_config, settings.tools),
    ...checkBudget(after, deps.models, redact),
  ]
  if (change.dropped.length > 0) warnings.push(droppedWarning(change.dropped))
  await own.updateLlm(change)
  return { llm_config, secrets, warnings, redact }
}

const droppedWarning = (names: readonly string[]) =>
  `llm_config leads to another endpoint or model: the fork has no ${names.join(', ')} of the original. Send them if they are valid there.`
