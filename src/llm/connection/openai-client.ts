/**
 * Loads the `openai` package with the first request: it costs time and memory, which a server without a running agent
 * saves. Nothing else imports it.
 */
import type { Endpoint } from '../endpoints/endpoint.ts'
import type { Post } from '../model-connection.ts'
import type { Fetch } from './pooled-fetch.ts'
import { createPooledFetch } from './pooled-fetch.ts'
import { prepareRequests } from './prepared-request.ts'

export async function createOpenAiPost(endpoint: Endpoint, path: string, fetch: Fetch | undefined): Promise<Post> {
  const { OpenAI } = await import('openai')
  const send = fetch ?? createPooledFetch()
  const client = new OpenAI({
    baseURL: endpoint.baseUrl,
    defaultQuery: endpoint.query,
    // Each of these, if omitted, would be read from the server's environment.
    apiKey: 'unused',
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
    logLevel: 'off',
    maxRetries: 0,
    // Do not follow redirects, because the key would go with them.
    fetch: (url, init) => send(url, { ...init, redirect: 'manual' }),
  })
  client.buildRequest = prepareRequests(client.buildURL(path, undefined), endpoint.headers)
  return ({ body, timeoutMs: timeout, signal }) =>
    client.post(path, { body, stream: true, signal, timeout }).asResponse()
}
