/**
 * Checks whether the operator allows the endpoint of a configuration, before the configuration is stored. The endpoint
 * is checked again for each connection.
 */
import type { LlmConfig } from '../../contract/values/llm-config.ts'
import { Problem } from '../../contract/problem.ts'
import { endpointOf } from '../../llm/endpoints/endpoint.ts'
import { LlmError } from '../../llm/errors/llm-error.ts'

/**
 * Throws a `Problem` if the endpoint is not allowed. Accepts a configuration without an endpoint: the first request
 * reports what is missing.
 */
export async function checkEndpoint(
  config: LlmConfig,
  refusal: (url: string) => Promise<string | undefined>,
): Promise<void> {
  const url = baseUrlOf(config)
  const why = url && (await refusal(url))
  if (!why) return
  throw new Problem(
    'llm_endpoint_refused',
    `Model requests to the endpoint of llm_config are not allowed: ${why}. Use another llm_config.base_url, or ask the operator to allow it with OPENHANDS_LLM_ALLOW.`,
  )
}

/** Undefined if the endpoint cannot be used: the next run reports what is missing. */
export function baseUrlOf(config: LlmConfig): string | undefined {
  try {
    return endpointOf(config).baseUrl
  } catch (error) {
    if (error instanceof LlmError) return undefined
    throw error
  }
}
