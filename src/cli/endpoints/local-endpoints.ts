/**
 * Finds servers of models on this machine, at the ports that they have by default. Nothing leaves the machine, and no key is
 * sent: any program can listen at these ports.
 */
import type { ListedModel } from '../../llm/catalog/model-list.ts'
import { modelListUrl, readModelList } from '../../llm/catalog/model-list.ts'
import type { Fetch } from '../../llm/connection/pooled-fetch.ts'
import { createPooledFetch, loadPooledFetch } from '../../llm/connection/pooled-fetch.ts'
import { VENDORS } from '../../llm/endpoints/vendors.ts'

/** A port is that of any loopback address. */
export type LocalModelServer = { readonly label: string; readonly port: number }

/** One of them has the same port as agent-server itself. */
export const LOCAL_SERVERS: readonly LocalModelServer[] = VENDORS.flatMap(({ label, baseUrl, isLocal }) =>
  isLocal && baseUrl !== undefined ? [{ label, port: Number(new URL(baseUrl).port) }] : [],
)

export type LocalEndpoint = {
  readonly label: string
  /** A URL such as `http://127.0.0.1:11434/v1`. */
  readonly baseUrl: string
  readonly models: readonly ListedModel[]
}

const LOOPBACK = ['127.0.0.1', '[::1]'] as const

type Limit = { readonly signal: AbortSignal; readonly timeoutMs: number }

/** Returns those that have answered in time, and before the signal, in the order of the servers. Never rejects. */
export async function findLocalEndpoints(
  servers: readonly LocalModelServer[],
  { signal: abortSignal, timeoutMs }: Limit,
): Promise<LocalEndpoint[]> {
  // This can take longer than all answers.
  await loadPooledFetch()
  const signal = AbortSignal.any([abortSignal, AbortSignal.timeout(timeoutMs)])
  const fetch = createPooledFetch()
  const foundEndpoints = await Promise.all(
    servers.map(async ({ label, port }) => {
      const answers = await Promise.all(LOOPBACK.map((host) => endpointAt(`http://${host}:${port}`, fetch, signal)))
      const endpoint = answers.find((answer) => answer !== undefined)
      return endpoint && { label, ...endpoint }
    }),
  )
  return foundEndpoints.filter((endpoint) => endpoint !== undefined)
}

async function endpointAt(
  origin: string,
  fetch: Fetch,
  signal: AbortSignal,
): Promise<Omit<LocalEndpoint, 'label'> | undefined> {
  const baseUrl = `${origin}/v1`
  const url = modelListUrl({ baseUrl, query: {} })
  try {
    const [{ models }, isAgentServer] = await Promise.all([
      readModelList(url, HEADERS, fetch, signal),
      answersAsAgentServer(origin, fetch, signal).catch(() => false),
    ])
    return models === undefined || isAgentServer ? undefined : { baseUrl, models }
  } catch {
    return undefined // nothing listens there, or it does not serve models
  }
}

const HEADERS = { 'user-agent': 'agent-server', 'accept-encoding': 'identity' } as const

/** What such a server says to everybody, this one and that of OpenHands. */
const ALIVE = '{"status":"ok"}'

/** A server of agents can also pass requests on to its model: an agent would be the model of itself. */
async function answersAsAgentServer(origin: string, fetch: Fetch, signal: AbortSignal): Promise<boolean> {
  const response = await fetch(`${origin}/alive`, { method: 'GET', headers: { ...HEADERS }, signal })
  let text = ''
  for await (const part of response.body ?? []) {
    text += Buffer.from(part).toString('latin1')
    // A stream without an end, or a page of another server.
    if (text.length > ALIVE.length * 2) return false
  }
  return text.replaceAll(/\s/g, '') === ALIVE
}
