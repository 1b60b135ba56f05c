/**
 * The `openai` package, loaded when the first request is made: it costs 50 ms and 20 MB that a server without a
 * running agent need not pay. Nothing else imports it.
 */
import type { OpenAI } from 'openai'
import type { Endpoint } from './endpoint.ts'

export type Fetch = (url: string | URL | Request, init?: RequestInit) => Promise<Response>

export async function createOpenAiClient(endpoint: Endpoint, fetch: Fetch | undefined): Promise<OpenAI> {
  const { OpenAI } = await import('openai')
  const send = fetch ?? (await patientFetch())
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

/**
 * Node's own fetch gives up after 300 s without headers or data; a slow model may think for longer, and `timeout` is
 * what decides. One pool of connections serves every conversation.
 */
let patient: Promise<Fetch> | undefined

function patientFetch(): Promise<Fetch> {
  patient ??= import('undici').then(({ Agent, fetch }) => {
    const dispatcher = new Agent({ headersTimeout: 0, bodyTimeout: 0 })
    // The types of undici and of Node describe the same classes under two names.
    return ((url: string, init: object) => fetch(url, { ...init, dispatcher })) as unknown as Fetch
  })
  return patient
}
