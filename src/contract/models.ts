/** What the server knows about models, on the wire. */
import { z } from 'zod'
import { ReasoningEffort } from './values/llm-config.ts'
import { PageLimit } from './values/page.ts'

const CatalogSource = z
  .enum(['config', 'file', 'endpoint', 'bundle'])
  .describe(
    '`config`: `llm_config`; `file`: OPENHANDS_MODEL_CATALOG; `endpoint`: the list of models of the endpoint; `bundle`: the catalogue of the server.',
  )
export type CatalogSource = z.infer<typeof CatalogSource>

const Usd = z.number().nonnegative().describe('USD.')

const PRICES = {
  input_cost_per_token: Usd,
  output_cost_per_token: Usd,
  cache_read_cost_per_token: Usd,
  cache_write_cost_per_token: Usd,
}

const ModelInfo = z
  .object({
    model: z.string().describe('The name that the provider expects.'),
    provider: z
      .string()
      .describe(
        'The provider as LiteLLM names it, or the host of the endpoint. Empty for models of any other endpoint.',
      ),
    context_window: z.int().positive().optional().describe('Tokens that the model can read.'),
    max_output_tokens: z.int().positive().optional(),
    ...z.object(PRICES).partial().shape,
    price_tiers: z
      .array(z.object({ above_input_tokens: z.int().positive(), ...PRICES }))
      .optional()
      .describe('Prices of requests with more input tokens, in ascending order.'),
    reasoning_efforts: z.array(ReasoningEffort).optional().describe('Absent: unknown.'),
    sources: z
      .object({ context_window: CatalogSource, max_output_tokens: CatalogSource, prices: CatalogSource })
      .partial()
      .describe('Where the values are from.'),
  })
  .meta({ id: 'ModelInfo' })
export type ModelInfo = z.infer<typeof ModelInfo>

export const ModelPage = z.object({ items: z.array(ModelInfo), next_page_id: z.string().nullable() }).meta({
  id: 'ModelPage',
  examples: [
    {
      items: [
        {
          model: 'claude-opus-4-5',
          provider: 'anthropic',
          context_window: 200_000,
          max_output_tokens: 64_000,
          input_cost_per_token: 0.000005,
          output_cost_per_token: 0.000025,
          cache_read_cost_per_token: 0.0000005,
          cache_write_cost_per_token: 0.00000625,
          sources: { context_window: 'bundle', max_output_tokens: 'bundle', prices: 'bundle' },
        },
      ],
      next_page_id: null,
    },
  ],
})
export type ModelPage = z.infer<typeof ModelPage>

export const ListModels = z.strictObject({
  provider: z.string().max(300).optional().describe('The whole `provider` of a model.'),
  q: z.string().min(1).max(200).optional().describe('Part of the name of the model, case-insensitive.'),
  limit: PageLimit,
  page_id: z
    .string()
    .regex(/^[^/]+\/./, 'must be next_page_id of an earlier page')
    .optional()
    .describe('`next_page_id` of the previous page: the last of its models. The page begins after it.'),
})
export type ListModels = z.infer<typeof ListModels>
