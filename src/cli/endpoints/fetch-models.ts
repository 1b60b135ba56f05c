/** Asks an endpoint for its list of models: that costs nothing, and shows whether it accepts the key. */
import { proxyVariable } from '../../config/environment.ts'
import { codeOf } from '../../lib/error-code.ts'
import type { ListedModel } from '../../llm/catalog/model-list.ts'
import { modelListUrl, readModelList } from '../../llm/catalog/model-list.ts'
import type { Endpoint } from '../../llm/endpoints/endpoint.ts'
import { createPooledFetch } from '../../llm/connection/pooled-fetch.ts'

const ANSWER_TIMEOUT_MS = 10_000

export type ModelsAnswer =
  | { readonly kind: 'models'; readonly models: readonly ListedModel[] }
  /** The endpoint refuses the key, or a request without one. */
  | { readonly kind: 'refused'; readonly status: number }
  | { readonly kind: 'listless'; readonly status: number }
  /** `reason` is a clause, and `fix` a sentence that says what to do. */
  | { readonly kind: 'unreachable'; readonly reason: string; readonly fix: string }

/** Rejects only with the reason of the signal. */
export async function fetchModels(endpoint: Endpoint, signal?: AbortSignal): Promise<ModelsAnswer> {
  const timeout = AbortSignal.timeout(ANSWER_TIMEOUT_MS)
  const either = signal ? AbortSignal.any([signal, timeout]) : timeout
  try {
    const { status, models } = await readModelList(
      modelListUrl(endpoint),
      endpoint.headers,
      createPooledFetch(),
      either,
    )
    if (status === 401 || status === 403) return { kind: 'refused', status }
    return models === undefined ? { kind: 'listless', status } : { kind: 'models', models }
  } catch (error) {
    signal?.throwIfAborted()
    return { kind: 'unreachable', ...explain(error, timeout.aborted) }
  }
}

type Explanation = { readonly reason: string; readonly fix: string }

const FIX = 'Check base_url, the network, and whether the server runs.'

/** Codes of the system and of TLS. */
const EXPLANATIONS: readonly (readonly [RegExp, Explanation])[] = [
  [
    /^(ENOTFOUND|EAI_\w+)$/,
    { reason: 'its name was not found', fix: 'Check the network, the name server, and the host in base_url.' },
  ],
  [/^ECONNREFUSED$/, { reason: 'nothing listens there', fix: 'Start the server, or check the port in base_url.' }],
  [
    /^(ENETUNREACH|EHOSTUNREACH|ENETDOWN|EHOSTDOWN)$/,
    { reason: 'the network does not reach it', fix: 'Check the network.' },
  ],
  [
    /CERT|SELF_SIGNED|UNABLE_TO_|ERR_TLS/,
    {
      reason: 'its certificate is not valid for this machine',
      fix: 'If a proxy of your network reads TLS, set NODE_EXTRA_CA_CERTS to the file with its certificate.',
    },
  ],
]

function explain(error: unknown, isLate: boolean): Explanation {
  const explanation = explanationOf(error, isLate)
  const proxy = proxyVariable()
  if (proxy === undefined) return explanation
  return { ...explanation, fix: `${explanation.fix} Requests to models do not use the proxy of ${proxy}.` }
}

function explanationOf(error: unknown, isLate: boolean): Explanation {
  if (isLate) return { reason: `nothing came within ${ANSWER_TIMEOUT_MS / 1000} seconds`, fix: FIX }
  const code = codeOf(error) ?? ''
  const [, knownExplanation] = EXPLANATIONS.find(([codes]) => codes.test(code)) ?? []
  if (knownExplanation) return { ...knownExplanation, reason: `${knownExplanation.reason} (${code})` }
  return { reason: error instanceof Error ? error.message : String(error), fix: FIX }
}
