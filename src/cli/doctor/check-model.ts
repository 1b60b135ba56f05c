/** Checks the endpoint of a model, its key, and whether it has the model. */
import { hasUserInfo } from '../../contract/values/http-header.ts'
import { nearestName } from '../../contract/nearest-name.ts'
import type { LlmConfig } from '../../contract/values/llm-config.ts'
import { endpointOf } from '../../llm/endpoints/endpoint.ts'
import { vendorAt } from '../../llm/endpoints/vendors.ts'
import { fetchModels } from '../endpoints/fetch-models.ts'
import type { Finding } from './check.ts'
import { bad, good, weak } from './check.ts'

/** `nameOfKey`: what has set the key, for a person. */
export async function checkModel(config: LlmConfig, nameOfKey: string | undefined): Promise<Finding> {
  const endpoint = endpointOf(config)
  const host = new URL(endpoint.baseUrl).host
  if (hasUserInfo(endpoint.baseUrl))
    return bad(`the URL of ${host} contains a user name or password`, 'Leave them out, and set LLM_API_KEY.')
  const answer = await fetchModels(endpoint)
  if (answer.kind === 'unreachable') return bad(`${host} does not answer: ${answer.reason}`, answer.fix)
  if (answer.kind === 'refused') {
    const which = nameOfKey === undefined ? 'there is no key' : `the key of ${nameOfKey} is refused`
    const variables = [...(vendorAt(endpoint.baseUrl)?.keyVariables.slice(0, 1) ?? []), 'LLM_API_KEY'].join(' or ')
    return bad(`${host}: ${which} (${answer.status})`, `Set ${variables} to a valid key of this endpoint.`)
  }
  if (answer.kind === 'listless')
    return weak(
      `${host} has no list of models (${answer.status}), so neither the key nor the model was checked`,
      'Try it: agent-server -p hello',
    )
  const ids = answer.models.map(({ id, name }) => id ?? name ?? '')
  const key = nameOfKey === undefined ? 'there is no key' : `the key is from ${nameOfKey}`
  if (ids.includes(endpoint.model) || ids.includes(config.model ?? ''))
    return good(`${host} has ${endpoint.model}; ${key}`)
  const nearest = nearestName(endpoint.model, ids)
  const hint = nearest === undefined ? `It has ${ids.slice(0, 5).join(', ')}` : `Did you mean ${nearest}`
  return weak(`${host} does not list ${endpoint.model}`, `${hint}${nearest === undefined ? '.' : '?'}`)
}
