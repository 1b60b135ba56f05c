/** How a conversation reaches its model: `llm_config` as clients send it and as it is told back. */
import { z } from 'zod'

/** What is shown in the place of a secret value; sent back, it means "unchanged". */
export const MASK = '**********'

/** The fields this server uses; the names are those of an OpenHands LLM object's dump. Durations are seconds. */
export const LlmConfig = z
  .object({
    model: z.string().min(1),
    api_key: z.string().optional(),
    base_url: z
      .url({ protocol: /^https?$/ })
      .optional()
      .describe('Any OpenAI-compatible endpoint.'),
    api_version: z.string().optional().describe('Sent as `api-version` (Azure).'),
    custom_llm_provider: z.string().optional(),
    temperature: z.number().min(0).max(2).optional().describe('Not sent when unset.'),
    top_p: z.number().min(0).max(1).optional(),
    top_k: z.number().nonnegative().optional(),
    reasoning_effort: z.enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh']).optional(),
    max_output_tokens: z.int().positive().optional(),
    timeout: z.number().positive().max(86_400).optional().describe('Seconds one request may take; 600 when unset.'),
    num_retries: z
      .int()
      .min(0)
      .max(20)
      .optional()
      .describe('Further attempts after a failure that may pass; 4 when unset.'),
    extra_headers: z.record(z.string(), z.string()).optional(),
    extra_body: z.record(z.string(), z.unknown()).optional(),
    input_cost_per_token: z.number().nonnegative().optional().describe('USD.'),
    output_cost_per_token: z.number().nonnegative().optional().describe('USD.'),
    tool_choice: z.enum(['auto', 'required', 'none']).optional(),
  })
  .meta({ id: 'LlmConfig' })
export type LlmConfig = z.infer<typeof LlmConfig>
