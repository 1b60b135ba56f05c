/**
 * The `openai` package, loaded when the first request is made: it costs 50 ms and 20 MB that a server without a
 * running agent need not pay. Nothing else imports it.
 */
import type { OpenAI } from 'openai'
import type { Endpoint } from './endpoint.ts'
import type { Fetch } from './pooled-fetch.ts'
import { createPooledFetch } from './pooled-fetch.ts'

export async function createOpenAiClient(endpoint: Endpoint, fetch: Fetch | undefined): Promise<OpenAI> {
  const { OpenAI } = await import('openai')
  const send = fetch ?? createPooledFetch()
  return new OpenAI({
    baseURL: endpoint.baseUrl,
    defaultQuery: endpoint.query,
    // Each of these, when left out, is taken from the environment of the server.
    apiKey: 'unused',
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
    logLevel: 'off',
    maxRetries: 0,
    // The headers are ours alone: the SDK adds those of OPENAI_CUSTOM_HEADERS, which no foreign endpoint should see.
    // A redirect is not followed, because it would take the key with it.
    fetch: (url, init) => send(url, { ...init, headers: endpoint.headers, redirect: 'manual' }),
  })
}
