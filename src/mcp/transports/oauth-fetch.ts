/**
 * Requests to authorization servers: limited in time and size, with errors that quote no secret, and each refresh token
 * used once. Requests to the MCP server itself pass through.
 */
import { z } from 'zod'
import type { UrlFetch } from '../../security/guarded-fetch.ts'
import type { ShowText } from '../tools/shown-text.ts'

/** The time for one request with its answer, in milliseconds. A user may have to permit the host. */
const REQUEST_MS = 20_000
const MAX_ANSWER_BYTES = 1024 ** 2
const MAX_ERROR_CHARS = 1000
/** Shorter values occur in ordinary text. */
const MIN_SECRET_CHARS = 8

type Answer = { readonly status: number; readonly headers: Headers; readonly body: string; readonly url: string }

/**
 * `fetch` is limited to the addresses that the MCP server may have. `signal` ends with the connection. Errors pass `show`,
 * as the SDK writes some of them to the standard error of this process.
 */
export function createOauthFetch(fetch: UrlFetch, signal: AbortSignal, show: ShowText): UrlFetch {
  const refreshing = new Map<string, Promise<Answer>>()
  return async (url, init) => {
    // The transports send their own requests with a signal, and the SDK those for OAuth without one.
    if (init?.signal) return await fetch(url, init)
    const limitedInit = { ...init, signal: AbortSignal.any([signal, AbortSignal.timeout(REQUEST_MS)]) }
    const read = async () => await readAnswer(await fetch(url, limitedInit), init, show)
    const body = textOf(init)
    if (new URLSearchParams(body).get('grant_type') !== 'refresh_token') return responseOf(await read())
    // Requests that were refused at the same time share one refresh: the second use of a token may revoke all.
    const key = `${String(url)} ${body}`
    let answer = refreshing.get(key)
    if (!answer) {
      answer = read()
      refreshing.set(key, answer)
      void answer.catch(() => {}).finally(() => refreshing.delete(key))
    }
    return responseOf(await answer)
  }
}

const textOf = (init: RequestInit | undefined): string =>
  init?.body instanceof URLSearchParams || typeof init?.body === 'string' ? init.body.toString() : ''

async function readAnswer(response: Response, init: RequestInit | undefined, show: ShowText): Promise<Answer> {
  const { status, headers, url } = response
  const text = await readText(response)
  const showPart = (part: string) => show(withoutSecrets(part, init), MAX_ERROR_CHARS)
  // Some servers answer an error with 200; the SDK quotes it too.
  const error = readError(text, showPart)
  return { status, headers, url, body: error ?? (response.ok ? checkedText(text) : showPart(text)) }
}

const OauthError = z.object({ error: z.string(), error_description: z.string().optional() })

/** Its strings are shown as they read: escapes of JSON hide nothing. Undefined for anything else. */
function readError(text: string, showPart: (part: string) => string): string | undefined {
  const { data } = OauthError.safeParse(parseJson(text))
  return data && JSON.stringify(data, (_, value: unknown) => (typeof value === 'string' ? showPart(value) : value))
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

async function readText({ body }: Response): Promise<string> {
  const parts: Uint8Array[] = []
  let bytes = 0
  for await (const part of body ?? []) {
    bytes += part.length
    if (bytes > MAX_ANSWER_BYTES) throw new Error(`its authorization server sent more than ${MAX_ANSWER_BYTES} bytes`)
    parts.push(part)
  }
  return Buffer.concat(parts).toString()
}

/** An error of the parser would quote the text, which may have a token in it. */
function checkedText(text: string): string {
  if (parseJson(text) === undefined) throw new Error('its authorization server answered with something else than JSON')
  return text
}

/** Replaces what the request had in it, wherever the answer repeats it: codes, tokens and the secret of the client. */
function withoutSecrets(text: string, init: RequestInit | undefined): string {
  const basic = /^Basic (.+)$/i.exec(new Headers(init?.headers).get('authorization') ?? '')?.[1]
  const credentials = basic === undefined ? [] : [basic, ...Buffer.from(basic, 'base64').toString().split(':').slice(1)]
  const sentFields = [...new URLSearchParams(textOf(init)).entries()]
    .filter(([name]) => SECRET_FIELD.test(name))
    .map(([, value]) => value)
  return [...sentFields, ...credentials]
    .filter((value) => value.length >= MIN_SECRET_CHARS)
    .flatMap((value) => [value, encodeURIComponent(value), inForm(value), JSON.stringify(value).slice(1, -1)])
    .reduce((rest, value) => rest.replaceAll(value, '<secret>'), text)
}

const inForm = (value: string): string => new URLSearchParams({ '': value }).toString().slice(1)

const SECRET_FIELD = /^(code|code_verifier|refresh_token|client_secret|client_assertion)$/

function responseOf({ status, headers, body, url }: Answer): Response {
  const response = new Response(status === 204 || status === 304 ? null : body, { status, headers })
  Object.defineProperty(response, 'url', { value: url })
  return response
}
