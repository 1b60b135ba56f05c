/** Makes errors of responses that are not successful, and of requests without a response. */
import type { ErrorBody } from '../../contract/problem.ts'
import { retryAfterMs } from '../../lib/backoff.ts'
import { AgentServerError } from './agent-server-error.ts'

/** Characters of a foreign response that the message quotes. */
const MAX_QUOTE = 200
/** The longest error of the server is shorter. */
const MAX_ERROR_CHARS = 1024 * 1024
const MAX_ERROR_MS = 10_000

export async function errorOf(response: Response): Promise<AgentServerError> {
  const { status, headers } = response
  const text = await startOf(response)
  const retryAfter = headers.get('retry-after')
  const options = { status, retryAfterMs: retryAfter === null ? undefined : retryAfterMs(retryAfter, Date.now()) }
  const body = parseErrorBody(text)
  return body ? AgentServerError.fromBody(body, options) : foreign(response, text, options)
}

/** Returns the error for a response of something else, such as a proxy. */
export function foreign(response: Response, text: string, options: { retryAfterMs?: number | undefined } = {}) {
  const { status, headers } = response
  const type = headers.get('content-type') ?? 'no content type'
  const start = text.replaceAll(/\s+/g, ' ').trim().slice(0, MAX_QUOTE)
  const quote = start === '' ? '' : ` It begins with: ${start}`
  return new AgentServerError(
    'unexpected_response',
    `The response is not from an agent-server (status ${status}, ${type}). Check the URL of the server and the proxies.${quote}`,
    { ...options, status },
  )
}

/**
 * Returns the text of a response up to a bound of size and time: what is not from the server may never end. Then the
 * connection is closed.
 */
export async function startOf({ body }: Response): Promise<string> {
  const reader = body?.getReader()
  if (!reader) return ''
  const timer = setTimeout(() => void reader.cancel().catch(() => {}), MAX_ERROR_MS)
  const text = new TextDecoder()
  let start = ''
  try {
    while (start.length < MAX_ERROR_CHARS) {
      const { value, done: isDone } = await reader.read()
      if (isDone) break
      start += text.decode(value, { stream: true })
    }
  } catch {
    // The connection was lost: what has arrived says enough.
  } finally {
    clearTimeout(timer)
    reader.cancel().catch(() => {})
  }
  return start
}

export function redirectError({ status, headers }: Response, url: string): AgentServerError {
  const target = headers.get('location')
  const where = target === null ? '' : ` to ${target.slice(0, MAX_QUOTE)}`
  return new AgentServerError(
    'unexpected_response',
    `${url} redirects${where}, which the client does not follow. Check the URL of the server: https instead of http, or a login of a proxy.`,
    { status: status || undefined },
  )
}

/** `fetch` rejects with a `TypeError`, whose cause says more where there is one. One that the options give may say what happened. */
export function connectionError(cause: unknown, url: string): AgentServerError {
  if (cause instanceof AgentServerError) return cause
  const reasons = [cause, cause instanceof Error ? cause.cause : undefined].flatMap((error) =>
    error instanceof Error && error.message !== '' ? [error.message] : [],
  )
  const why = reasons.at(-1) ?? String(cause)
  return new AgentServerError(
    'connection_failed',
    `There was no complete response from ${url} (${why}). Check that the server is running and can be reached.`,
    { cause },
  )
}

function parseErrorBody(text: string): ErrorBody | undefined {
  try {
    const body: unknown = JSON.parse(text)
    return isErrorBody(body) ? body : undefined
  } catch {
    return undefined // not JSON: the response of something else
  }
}

function isErrorBody(body: unknown): body is ErrorBody {
  if (typeof body !== 'object' || body === null || !('error' in body) || !('message' in body)) return false
  return typeof body.error === 'string' && typeof body.message === 'string'
}
