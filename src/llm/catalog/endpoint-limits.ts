/**
 * Limits in an endpoint's own list of models: OpenRouter and vLLM have them, LM Studio and Ollama at another path.
 * Nothing waits for the list, and a failure only means that nothing is known.
 */
import { z } from 'zod'
import { parseUntrustedJson } from '../../lib/json/untrusted-json.ts'
import type { Endpoint } from '../endpoint.ts'
import type { Fetch } from '../pooled-fetch.ts'
import type { ModelFacts } from './model-facts.ts'
import { keyOf } from './model-names.ts'

/** Ollama's window is that of the loaded model, and may change. */
const ASK_AGAIN_MS = 10 * 60 * 1000
const TIMEOUT_MS = 5000
const MAX_BYTES = 4 * 1024 * 1024
/** OpenRouter's list has about a hundred values for each of 400 models. */
const MAX_VALUES = 200_000
/** Clients choose endpoints: the one that was asked first is forgotten. */
const MAX_ENDPOINTS = 100

const Tokens = z.int().min(1).max(100_000_000).optional().catch(undefined)
const Model = z.looseObject({
  id: z.string().optional(),
  name: z.string().optional(),
  owned_by: z.string().optional().catch(undefined),
  // vLLM; OpenRouter and Ollama; LM Studio.
  max_model_len: Tokens,
  context_length: Tokens,
  loaded_context_length: Tokens,
  max_context_length: Tokens,
  top_provider: z.looseObject({ context_length: Tokens, max_completion_tokens: Tokens }).optional().catch(undefined),
})
type Model = z.infer<typeof Model>
const List = z.union([
  z.looseObject({ data: z.array(z.unknown()) }).transform(({ data }) => data),
  z.looseObject({ models: z.array(z.unknown()) }).transform(({ models }) => models),
])

/** `owned_by` of a server that has the limits in another list -> the path of that list. */
const OTHER_LISTS: Readonly<Record<string, string>> = {
  library: '/api/ps',
  organization_owner: '/api/v0/models',
}

type EndpointList = { readonly askedAt: number; models: ReadonlyMap<string, Omit<ModelFacts, 'name'>> }

export class EndpointLimits {
  readonly #lists = new Map<string, EndpointList>()

  factsOf({ baseUrl, model }: Endpoint): Omit<ModelFacts, 'name'> | undefined {
    return this.#lists.get(baseUrl)?.models.get(keyOf(model))
  }

  /** Asks the endpoint, unless it was asked lately. Never rejects. */
  async ask(endpoint: Endpoint, fetch: Fetch): Promise<void> {
    const { baseUrl } = endpoint
    const before = this.#lists.get(baseUrl)
    const now = performance.now()
    if (before && now - before.askedAt < ASK_AGAIN_MS) return
    const list: EndpointList = { askedAt: now, models: before?.models ?? new Map() }
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

async function readLists(endpoint: Endpoint, fetch: Fetch): Promise<Model[]> {
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  const get = (url: URL) => readModels(url, endpoint, fetch, signal)
  const own = new URL(endpoint.baseUrl)
  own.pathname = `${own.pathname.replace(/\/$/, '')}/models`
  const models = await get(own)
  const path = models.map(({ owned_by = '' }) => OTHER_LISTS[owned_by]).find((each) => each !== undefined)
  return path === undefined ? models : await get(new URL(path, own))
}

async function readModels(url: URL, { headers }: Endpoint, fetch: Fetch, signal: AbortSignal): Promise<Model[]> {
  const response = await fetch(url.href, { method: 'GET', headers, signal })
  const text = await textOf(response, signal)
  if (!response.ok) return []
  const list = List.parse(parseUntrustedJson(text, { values: MAX_VALUES }))
  return list.map((each) => Model.safeParse(each).data).filter((model) => model !== undefined)
}

async function textOf({ body }: Response, signal: AbortSignal): Promise<string> {
  const parts: Uint8Array[] = []
  let bytes = 0
  for await (const part of body ?? []) {
    signal.throwIfAborted()
    parts.push(part)
    bytes += part.length
    if (bytes > MAX_BYTES) throw new Error('the list of models is too long')
  }
  return Buffer.concat(parts).toString()
}

function limitsIn(models: readonly Model[]): EndpointList['models'] {
  const limits = models.map((model) => {
    const { id, name = '', top_provider: top } = model
    const inList = model.max_model_len ?? model.context_length
    const whole = inList ?? model.loaded_context_length ?? model.max_context_length
    const window = whole && Math.min(whole, top?.context_length ?? whole)
    return [keyOf(id ?? name), { window, maxOutput: top?.max_completion_tokens }] as const
  })
  return new Map(limits.filter(([, { window }]) => window !== undefined))
}
