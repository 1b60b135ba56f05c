/**
 * Loads the `openai` package with the first request: it costs 50 ms and 20 MB, which a server without a running agent
 * saves. Nothing else imports it.
 */
import type { Endpoint } from './endpoint.ts'
import type { Post } from './model-connection.ts'
import type { Fetch } from './pooled-fetch.ts'
import { createPooledFetch } from './pooled-fetch.ts'

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
  const url = client.buildURL(path, undefined)
  // Send only our headers: the SDK adds those of OPENAI_CUSTOM_HEADERS, which no foreign endpoint should see.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `send` takes a plain record
  const headers = endpoint.headers as unknown as Headers
  client.buildRequest = async ({ method, body, timeout = 0, signal }) => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- bytes, from below
    return { req: { method, headers, body: body as Buffer, signal: signal ?? null }, url, timeout }
  }
  return ({ body, timeoutMs: timeout, signal }) =>
    client.post(path, { body, stream: true, signal, timeout }).asResponse()
}
