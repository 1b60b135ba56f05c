/**
 * Limits in an endpoint's own list of models: OpenRouter and vLLM have them, LM Studio and Ollama at another path.
 * Nothing waits for the list, and a failure only means that nothing is known.
 */
import type { Endpoint } from '../endpoints/endpoint.ts'
import type { Fetch } from '../connection/pooled-fetch.ts'
import type { ModelFacts } from './model-facts.ts'
import type { ListedModel } from './model-list.ts'
import { listedWindow, modelListUrl, readModelList } from './model-list.ts'
import { keyOf } from './model-names.ts'

/** Ollama's window is that of the loaded model, and may change. */
const REQUEST_AGAIN_MS = 10 * 60 * 1000
const TIMEOUT_MS = 5000
/** Clients choose endpoints: the one that was asked first is forgotten. */
const MAX_ENDPOINTS = 100

/** `owned_by` of a server that has the limits in another list -> the path of that list. */
const OTHER_LISTS: ReadonlyMap<string, string> = new Map([
  ['library', '/api/ps'],
  ['organization_owner', '/api/v0/models'],
])

type EndpointList = { readonly requestedAt: number; models: ReadonlyMap<string, Omit<ModelFacts, 'name'>> }

export class EndpointLimits {
  readonly #lists = new Map<string, EndpointList>()

  factsOf({ baseUrl, model }: Endpoint): Omit<ModelFacts, 'name'> | undefined {
    return this.#lists.get(baseUrl)?.models.get(keyOf(model))
  }

  /** Fetches the list of the endpoint, unless it was fetched lately. Never rejects. */
  async update(endpoint: Endpoint, fetch: Fetch): Promise<void> {
    const { baseUrl } = endpoint
    const before = this.#lists.get(baseUrl)
    const now = performance.now()
    if (before && now - before.requestedAt < REQUEST_AGAIN_MS) return
    const list: EndpointList = { requestedAt: now, models: before?.models ?? new Map() }
    this.#lists.delete(baseUrl)
    this.#lists.set(baseUrl, list)
    const [oldest] = this.#lists.keys()
    if (this.#lists.size > MAX_ENDPOINTS && oldest !== undefined) this.#lists.delete(oldest)
    try {
      list.models = limitsIn(await readLists(endpoint, fetch))
    } catch {
      // It has no such list, or does not answer: the limits stay as they were known.
    }
  }
}

async function readLists(endpoint: Endpoint, fetch: Fetch): Promise<ListedModel[]> {
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  const get = async (url: URL) => {
    const { models } = await readModelList(url, endpoint.headers, fetch, signal)
    if (models === undefined) throw new Error('there is no list of models')
    return models
  }
  const own = modelListUrl(endpoint)
  const models = await get(own)
  const path = models.map(({ owned_by = '' }) => OTHER_LISTS.get(owned_by)).find((each) => each !== undefined)
  return path === undefined ? models : await get(new URL(path, own))
}

function limitsIn(models: readonly ListedModel[]): EndpointList['models'] {
  const limits = models.map((model) => {
    const { id, name = '', top_provider: top } = model
    return [keyOf(id ?? name), { window: listedWindow(model), maxOutput: top?.max_completion_tokens }] as const
  })
  return new Map(limits.filter(([, { window }]) => window !== undefined))
}
