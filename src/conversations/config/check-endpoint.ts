/** Whether the operator allows the endpoint of a configuration, before it is kept. When connecting, it is judged again. */
import type { LlmConfig } from '../../contract/llm-config.ts'
import { Problem } from '../../contract/problem.ts'
import { endpointOf } from '../../llm/endpoint.ts'
import { LlmError } from '../../llm/llm.ts'

/** Throws a `Problem`. What leads nowhere yet is let pass: the first request says what is missing. */
export async function checkEndpoint(
  config: LlmConfig,
  refusal: (url: string) => Promise<string | undefined>,
): Promise<void> {
  const url = baseUrlOf(config)
  const why = url && (await refusal(url))
  if (!why) return
  throw new Problem(
    'llm_endpoint_refused',
    `Model requests to the endpoint of llm_config are not allowed: ${why}. Use another base_url, or have the operator allow it with OPENHANDS_LLM_ALLOW.`,
  )
}

function baseUrlOf(config: LlmConfig): string | undefined {
  try {
    return endpointOf(config).baseUrl
  } catch (error) {
    if (error instanceof LlmError) return undefined
    throw error
  }
}
