/** Reads the list of models of an endpoint: that costs nothing. Lists can be wrong or hostile, so they are bounded. */
import { z } from 'zod'
import { parseUntrustedJson } from '../../lib/json/untrusted-json.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import type { Fetch } from '../connection/pooled-fetch.ts'

/** The longest lists have some hundred kilobytes. */
const MAX_BYTES = 8 * 1024 * 1024
/** OpenRouter's list has about a hundred values for each of 400 models. */
const MAX_VALUES = 200_000
/** No more is kept: clients choose endpoints. */
const MAX_MODELS = 2000
const MAX_NAME_CHARS = 200

const Tokens = z.int().min(1).max(100_000_000).optional().catch(undefined)
/** What nobody sees, or what a terminal obeys: the name that is chosen is kept in settings, and shown by other programs. */
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|^\s|\s$/u
const Name = z
  .string()
  .max(MAX_NAME_CHARS)
  .refine((name) => !UNSEEN.test(name))
  .optional()
const Model = z.looseObject({
  id: Name,
  name: Name,
  owned_by: z.string().optional().catch(undefined),
  // vLLM; OpenRouter and Ollama; LM Studio.
  max_model_len: Tokens,
  context_length: Tokens,
  loaded_context_length: Tokens,
  max_context_length: Tokens,
  top_provider: z.looseObject({ context_length: Tokens, max_completion_tokens: Tokens }).optional().catch(undefined),
})
export type ListedModel = z.infer<typeof Model>
const List = z.union([
  z.looseObject({ data: z.array(z.unknown()) }).transform(({ data }) => data),
  z.looseObject({ models: z.array(z.unknown()) }).transform(({ models }) => models),
])

/** `models` is undefined if the answer is not a list. */
export type ModelList = { readonly status: number; readonly models: ListedModel[] | undefined }

/** Returns the URL of OpenAI, Anthropic and all that are compatible with them. */
export function modelListUrl({ baseUrl, query }: Pick<Endpoint, 'baseUrl' | 'query'>): URL {
  const url = new URL(baseUrl)
  url.pathname = `${url.pathname.replace(/\/$/, '')}/models`
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
  return url
}

/** Follows no redirect: it would take the key elsewhere. Rejects if there is no answer, or one that is too long. */
export async function readModelList(
  url: URL,
  headers: Endpoint['headers'],
  fetch: Fetch,
  signal: AbortSignal,
): Promise<ModelList> {
  const { 'content-type': _, ...sentHeaders } = headers
  const response = await fetch(url.href, {
    method: 'GET',
    headers: { ...sentHeaders, accept: 'application/json' },
    signal,
  })
  const text = await textOf(response, signal)
  const list = response.ok ? List.safeParse(parseJson(text)).data : undefined
  const models = list
    ?.slice(0, MAX_MODELS)
    .map((each) => Model.safeParse(each).data)
    .filter((model) => model !== undefined)
  return { status: response.status, models }
}

/** The window that a list says, if it does. */
export function listedWindow(model: ListedModel): number | undefined {
  const inList = model.max_model_len ?? model.context_length
  const whole = inList ?? model.loaded_context_length ?? model.max_context_length
  return whole && Math.min(whole, model.top_provider?.context_length ?? whole)
}

async function textOf({ body }: Response, signal: AbortSignal): Promise<string> {
  const parts: Uint8Array[] = []
  let bytes = 0
  for await (const part of body ?? []) {
    signal.throwIfAborted()
    parts.push(part)
    bytes += part.length
    if (bytes > MAX_BYTES) throw new Error('its list of models is larger than 8 MiB')
  }
  return Buffer.concat(parts).toString()
}

function parseJson(text: string): unknown {
  try {
    return parseUntrustedJson(text, { values: MAX_VALUES })
  } catch {
    return undefined
  }
}
