/** Checks that a budget limits something: the cost of every model that may be asked must be known. */
import type { CompactionSettings } from '../../contract/compaction/settings.ts'
import type { LlmConfig } from '../../contract/values/llm-config.ts'
import { Problem } from '../../contract/problem.ts'
import type { ModelCatalog } from '../../llm/catalog/model-catalog.ts'
import { LlmError } from '../../llm/errors/llm-error.ts'
import { withOtherModel } from '../../llm/other-model.ts'
import { configsOf } from '../../llm/targets.ts'
import type { Settings } from '../../state/settings.ts'
import type { VendorKeys } from '../../llm/endpoints/vendor-keys.ts'
import type { LlmDefaults } from '../config/llm-origin.ts'
import { agentsIn } from './definitions.ts'

/** The settings that decide which models are asked, and what they may cost. */
export type BudgetedSettings = {
  readonly llm_config: LlmConfig
  readonly max_budget_usd?: number | undefined
  readonly allow_unpriced?: boolean | undefined
  readonly generate_title?: boolean | undefined
  readonly title_model?: string | undefined
  readonly compaction?: CompactionSettings | undefined
} & Pick<Settings, 'agents' | 'project_settings'>

/** The fields of an update that may change what `checkBudget` returns. */
const FIELDS = ['llm_config', 'max_budget_usd', 'allow_unpriced', 'compaction', 'agents'] as const

export const concernsBudget = (update: { readonly [K in (typeof FIELDS)[number]]?: unknown }): boolean =>
  FIELDS.some((field) => update[field] !== undefined)

/** Throws a `Problem` that names the models without a known cost. Returns a warning instead if they are allowed. */
export function checkBudget(
  settings: BudgetedSettings,
  { catalog, defaults }: { readonly catalog: ModelCatalog; readonly defaults: LlmDefaults },
  redact: (text: string) => string,
): string[] {
  const { max_budget_usd: budget, allow_unpriced: isAllowed } = settings
  if (budget === undefined) return []
  const names = unpricedIn(modelsOf(settings, defaults.vendorKeys), catalog).map(redact)
  if (names.length === 0) return []
  if (isAllowed) return [`max_budget_usd does not count the answers of ${names.join(', ')}, if their cost is not known`]
  throw new Problem('invalid_request', describeUnpriced(names), { details: { models: names } })
}

/** Throws a `Problem` if the model of a run may not be asked under the budget. */
export function checkBudgetOfRun(settings: BudgetedSettings, model: string | undefined, catalog: ModelCatalog): void {
  const { llm_config, max_budget_usd: budget, allow_unpriced: isAllowed } = settings
  if (model === undefined || budget === undefined || isAllowed) return
  const names = unpricedIn([withOtherModel(llm_config, model)], catalog)
  if (names.length > 0) throw new Problem('unknown_cost', describeUnpriced(names), { details: { models: names } })
}

const describeUnpriced = (names: readonly string[]): string =>
  `max_budget_usd cannot limit the cost of ${names.join(', ')}: no price is known, and the endpoint is not known to report costs. Set the prices in llm_config, add the models to OPENHANDS_MODEL_CATALOG, or allow the unknown cost with allow_unpriced.`

/** Returns the configurations of the models that a conversation may ask. `keys`: those that fallback models may use. */
export function modelsOf(settings: BudgetedSettings, keys?: VendorKeys): LlmConfig[] {
  const { llm_config: config, compaction, generate_title: hasTitle, title_model: ofTitle } = settings
  const ofAgents = agentsIn(settings).map(({ definition }) => definition.model)
  const others = [hasTitle ? ofTitle : undefined, compaction?.model, ...ofAgents]
  const otherModels = others.filter((model): model is string => model !== undefined && model !== 'inherit')
  return [...targetsIfAny(config, keys), ...otherModels.map((model) => withOtherModel(config, model))]
}

/** A configuration without an endpoint sends no request. */
function targetsIfAny(config: LlmConfig, keys: VendorKeys | undefined): readonly LlmConfig[] {
  try {
    return configsOf(config, keys)
  } catch (error) {
    if (error instanceof LlmError) return []
    throw error
  }
}

const unpricedIn = (configs: readonly LlmConfig[], catalog: ModelCatalog): string[] => [
  ...new Set(configs.filter((config) => !catalog.knowsCost(config)).map(({ model = '' }) => model)),
]
