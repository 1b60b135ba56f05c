/** How requests to models go out: over one pool of connections for every conversation, with no limit on time but the caller's. */
import type { Dispatcher } from 'undici'

export type Fetch = (url: string | URL | Request, init?: RequestInit) => Promise<Response>

/** undici is loaded when the first request is made. */
let patient: Promise<Fetch> | undefined

/**
 * Node's own fetch gives up after 300 s without headers or data; a slow model may think for longer, and `timeout` is
 * what decides. undici's `request` takes half the CPU of its `fetch`, most of which goes into web streams. A redirect
 * is an answer like any other.
 */
export function patientFetch(): Promise<Fetch> {
  patient ??= import('undici').then(({ Agent, request }) => {
    const dispatcher = new Agent({ headersTimeout: 0, bodyTimeout: 0 })
    return async (url, init = {}) => {
      const { method, body, headers, signal } = init as PlainInit
      return asResponse(await request(url as string, { method, body, headers, signal, dispatcher }))
    }
  })
  return patient
}

/** What the SDK asks with when it is given bytes and plain headers. */
type PlainInit = {
  readonly method: Dispatcher.HttpMethod
  readonly body: Buffer
  readonly headers: Record<string, string>
  readonly signal: AbortSignal
}

/** As much of one as is read: status and headers, the body's bytes as an async iterable, or its text. */
function asResponse({ statusCode: status, headers, body }: Dispatcher.ResponseData): Response {
  const ok = status >= 200 && status < 300
  const response = { ok, status, headers: headersOf(headers), body, text: () => body.text() }
  return response as unknown as Response
}

function headersOf(received: Dispatcher.ResponseData['headers']): Headers {
  const headers = new Headers()
  for (const [name, values] of Object.entries(received)) {
    for (const value of [values ?? []].flat()) headers.append(name, value)
  }
  return headers
}
