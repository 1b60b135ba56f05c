/** Decides which origins' pages may call the API from a browser. The only file that decides about origins. */
import type { FastifyInstance } from 'fastify'

export type IsAllowedOrigin = (origin: string) => boolean

/** `*` allows every origin; the others must match exactly. */
export function originRule(allowedOrigins: readonly string[]): IsAllowedOrigin {
  const exact = new Set(allowedOrigins)
  return exact.has('*') ? () => true : (origin) => exact.has(origin)
}

/** Headers that pages may send and read in addition to what browsers always allow. */
const REQUEST_HEADERS = ['Authorization', 'Content-Type', 'Idempotency-Key', 'Last-Event-ID', 'X-Request-Id'].concat([
  'Range',
  'If-Match',
  'If-None-Match',
  'If-Modified-Since',
  'If-Unmodified-Since',
  'If-Range',
  'X-Conversation-Id',
  'Mcp-Protocol-Version',
  'Mcp-Method',
  'Mcp-Name',
  'A2A-Version',
  // The client of OpenAI sends them with each request.
  ...[
    'Arch',
    'Helper-Method',
    'Lang',
    'OS',
    'Package-Version',
    'Retry-Count',
    'Runtime',
    'Runtime-Version',
    'Timeout',
  ].map((name) => `X-Stainless-${name}`),
])
const ANSWER_HEADERS = [
  'Location',
  'Allow',
  'Retry-After',
  // The client of OpenAI reads it.
  'X-Should-Retry',
  'WWW-Authenticate',
  'X-Firehose-Cursor',
  'X-Request-Id',
  'Content-Disposition',
  'X-Vercel-AI-UI-Message-Stream',
].concat(['ETag', 'Accept-Ranges', 'Content-Range', 'Content-Length', 'Last-Modified'])

/** How long a browser may cache a preflight, in seconds. */
const PREFLIGHT_LIFETIME_S = 600

/**
 * Preflights need no key, because browsers send none with them. If no origin is allowed, nothing is loaded or added.
 * The key is not a cookie: without `credentials`, a page can only use a key that it has.
 */
export async function registerCors(app: FastifyInstance, allowedOrigins: readonly string[]): Promise<void> {
  if (allowedOrigins.length === 0) return
  const { default: cors } = await import('@fastify/cors')
  const isAllowed = originRule(allowedOrigins)
  const any = allowedOrigins.includes('*')
  await app.register(cors, {
    // False leaves a request unchanged: it is answered as if it did not come from a browser.
    origin: (origin, callback) => callback(null, origin !== undefined && isAllowed(origin) && (any ? '*' : origin)),
    methods: ['GET', 'HEAD', 'POST', 'PUT', 'DELETE'],
    allowedHeaders: REQUEST_HEADERS,
    exposedHeaders: ANSWER_HEADERS,
    maxAge: PREFLIGHT_LIFETIME_S,
    strictPreflight: false,
  })
}
