/** Asks the endpoint of a model for its list of models: that costs nothing, and shows whether it accepts the key. */
import { z } from 'zod'
import { hasUserInfo } from '../../contract/http-header.ts'
import { nearestName } from '../../contract/nearest-name.ts'
import type { LlmConfig } from '../../contract/llm-config.ts'
import type { Endpoint } from '../../llm/endpoint.ts'
import { endpointOf } from '../../llm/endpoint.ts'
import type { Finding } from './check.ts'
import { bad, good, weak } from './check.ts'

const ANSWER_TIMEOUT_MS = 10_000
/** The longest lists have some hundred kilobytes. */
const MAX_LIST_BYTES = 8 * 1024 * 1024

/** The list of OpenAI, Anthropic and those that are compatible with them. */
const ModelList = z.object({ data: z.array(z.object({ id: z.string() })) })

/** `nameOfKey`: what has set the key, for a person. */
export async function checkModel(config: LlmConfig, nameOfKey: string | undefined): Promise<Finding> {
  const endpoint = endpointOf(config)
  const host = new URL(endpoint.baseUrl).host
  if (hasUserInfo(endpoint.baseUrl))
    return bad(`the URL of ${host} contains a user name or password`, 'Leave them out, and set LLM_API_KEY.')
  const response = await askForModels(endpoint).catch((error: unknown) => reasonOf(error))
  if (typeof response === 'string')
    return bad(`${host} does not answer: ${response}`, 'Check base_url, the network, and whether the server runs.')
  const { status, body } = response
  if (status === 401 || status === 403) {
    const which = nameOfKey === undefined ? 'there is no key' : `the key of ${nameOfKey} is refused`
    return bad(`${host}: ${which} (${status})`, 'Set LLM_API_KEY to a valid key of this endpoint.')
  }
  const { success, data } = ModelList.safeParse(body)
  if (status !== 200 || !success)
    return weak(
      `${host} has no list of models (${status}), so neither the key nor the model was checked`,
      'Try it: agent-server -p hello',
    )
  const ids = data.data.map(({ id }) => id)
  if (ids.includes(endpoint.model) || ids.includes(config.model ?? '')) return good(`${host} has ${endpoint.model}`)
  const nearest = nearestName(endpoint.model, ids)
  const hint = nearest === undefined ? `It has ${ids.slice(0, 5).join(', ')}` : `Did you mean ${nearest}`
  return weak(`${host} does not list ${endpoint.model}`, `${hint}${nearest === undefined ? '.' : '?'}`)
}

/** Follows no redirect: it would take the key elsewhere. */
async function askForModels({ baseUrl, query, headers }: Endpoint): Promise<{ status: number; body: unknown }> {
  const url = new URL(`${baseUrl.replace(/\/$/, '')}/models`)
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
  const { 'content-type': _, ...sent } = headers
  const signal = AbortSignal.timeout(ANSWER_TIMEOUT_MS)
  const response = await fetch(url, { headers: { ...sent, accept: 'application/json' }, redirect: 'manual', signal })
  return { status: response.status, body: parsed(await textOf(response)) }
}

async function textOf({ body }: Response): Promise<string> {
  const pieces: Uint8Array[] = []
  let length = 0
  for await (const piece of body ?? []) {
    pieces.push(piece)
    length += piece.length
    if (length > MAX_LIST_BYTES) throw new Error('its list of models is larger than 8 MiB')
  }
  return Buffer.concat(pieces).toString('utf8')
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

/** `fetch` hides the reason in the cause. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  if (!(cause instanceof Error)) return String(cause)
  return cause.name === 'TimeoutError' ? `nothing within ${ANSWER_TIMEOUT_MS / 1000} seconds` : cause.message
}
