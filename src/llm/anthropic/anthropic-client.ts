/**
 * Loads the `@anthropic-ai/sdk` package with the first request: a server without a running agent saves its memory.
 * Nothing else imports it, except for types.
 *
 * The stream is decoded by our own code and not by the SDK, which limits neither the length of a line nor the size and
 * the depth of its JSON.
 */
import type { Endpoint } from '../endpoints/endpoint.ts'
import type { Post } from '../model-connection.ts'
import type { Fetch } from '../connection/pooled-fetch.ts'
import { createPooledFetch } from '../connection/pooled-fetch.ts'
import { prepareRequests } from '../connection/prepared-request.ts'

export async function createAnthropicPost(endpoint: Endpoint, fetch: Fetch | undefined): Promise<Post> {
  const { Anthropic } = await import('@anthropic-ai/sdk')
  const send = fetch ?? createPooledFetch()
  const client = new Anthropic({
    baseURL: endpoint.baseUrl,
    defaultQuery: endpoint.query,
    // Each of these, if omitted, would be read from the server's environment, or from files of its user.
    apiKey: 'unused',
    webhookKey: null,
    openTelemetry: false,
    logLevel: 'off',
    maxRetries: 0,
    // Do not follow redirects, because the key would go with them.
    fetch: (url, init) => send(url, { ...init, redirect: 'manual' }),
  })
  const path = /\/v\d+\/?$/.test(new URL(endpoint.baseUrl).pathname) ? '/messages' : '/v1/messages'
  client.buildRequest = prepareRequests(client.buildURL(path, undefined), endpoint.headers)
  return ({ body, timeoutMs: timeout, signal }) =>
    client.post(path, { body, stream: true, signal, timeout }).asResponse()
}
