/**
 * Finds servers of models on this machine, at the ports that they have by default. Nothing leaves the machine, and no key is
 * sent: any program can listen at these ports.
 */
import type { ListedModel } from '../../llm/catalog/model-list.ts'
import { modelListUrl, readModelList } from '../../llm/catalog/model-list.ts'
import type { Fetch } from '../../llm/pooled-fetch.ts'
import { createPooledFetch } from '../../llm/pooled-fetch.ts'

export type LocalServer = { readonly name: string; readonly port: number }

export const LOCAL_SERVERS: readonly LocalServer[] = [
  { name: 'Ollama', port: 11434 },
  { name: 'LM Studio', port: 1234 },
  // Also the port of agent-server itself.
  { name: 'vLLM', port: 8000 },
]

export type LocalEndpoint = {
  readonly name: string
  /** Such as `http://127.0.0.1:11434/v1`. */
  readonly baseUrl: string
  readonly models: readonly ListedModel[]
}

/** A person waits for all of them together. A server that runs answers within a few milliseconds. */
const TIMEOUT_MS = 1000
const LOOPBACK = ['127.0.0.1', '[::1]'] as const

/** In the order of the servers. Rejects only with the reason of the signal. */
export async function findLocalEndpoints(
  servers: readonly LocalServer[],
  signal: AbortSignal,
): Promise<LocalEndpoint[]> {
  const either = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)])
  const fetch = createPooledFetch()
  const found = await Promise.all(
    servers.map(async ({ name, port }) => {
      const answers = await Promise.all(LOOPBACK.map((host) => endpointAt(`http://${host}:${port}`, fetch, either)))
      const endpoint = answers.find((answer) => answer !== undefined)
      return endpoint && { name, ...endpoint }
    }),
  )
  signal.throwIfAborted()
  return found.filter((endpoint) => endpoint !== undefined)
}

async function endpointAt(
  origin: string,
  fetch: Fetch,
  signal: AbortSignal,
): Promise<Omit<LocalEndpoint, 'name'> | undefined> {
  const baseUrl = `${origin}/v1`
  const url = modelListUrl({ baseUrl, query: {} })
  try {
    const [{ models }, isAgentServer] = await Promise.all([
      readModelList(url, HEADERS, fetch, signal),
      answersAsAgentServer(origin, fetch, signal).catch(() => false),
    ])
    return models === undefined || isAgentServer ? undefined : { baseUrl, models }
  } catch {
    return undefined // nothing listens there, or it is no server of models
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
