/** Warns about a budget that may have no effect. */
import type { LlmConfig } from '../../contract/llm-config.ts'
import type { ModelCatalog } from '../../llm/catalog/model-catalog.ts'

/** Without a price, only an endpoint that reports costs lets the server know them. */
export function budgetWarning(budget: number | undefined, config: LlmConfig, catalog: ModelCatalog): string[] {
  if (budget === undefined || catalog.knowsCost(config)) return []
  return [
    'max_budget_usd has no effect if the endpoint does not report costs: set llm_config.input_cost_per_token and llm_config.output_cost_per_token',
  ]
}
