/**
 * `/ui/`: the dashboard, a client of this API like any other. Its files are hashed and compressed by the build, so they are
 * sent as they are, and nothing is read before the first request.
 */
import { gunzipSync } from 'node:zlib'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '../contract/problem.ts'
import { readAsset } from './assets.ts'

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  webmanifest: 'application/manifest+json',
}

/**
 * What agents, tools and files say is hostile. Trusted types forbid the page to make markup of any text, and nothing may be
 * loaded from elsewhere.
 */
const HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), microphone=(), geolocation=()',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
} as const

/** The only file whose name is the same in all versions. */
const PAGE = 'index.html'

const PART = { config: { public: true, page: true }, schema: { hide: true } }

export function dashboardRoutes(app: FastifyInstance): void {
  app.get('/ui', PART, (request, reply) => {
    const path = request.url.split('?', 1)[0] ?? ''
    // The page's relative links would point one level too high without the slash.
    return path.endsWith('/') ? send(request, reply, PAGE, 'no-cache') : reply.redirect('ui/')
  })
  app.get<{ Params: { file: string } }>('/ui/:file', PART, (request, reply) => {
    const { file } = request.params
    return send(request, reply, file, file === PAGE ? 'no-cache' : 'public, max-age=31536000, immutable')
  })
}

function send(request: FastifyRequest, reply: FastifyReply, file: string, caching: string): FastifyReply {
  void reply.headers(HEADERS)
  const type = TYPES[/^[\w-]+\.(\w+)$/.exec(file)?.[1] ?? '']
  const encoding = encodingFor(request)
  const content = type === undefined ? undefined : contentOf(file, encoding?.suffix)
  if (content === undefined || type === undefined)
    throw new Problem('not_found', 'The dashboard has no such file. From the sources, `npm run build` makes its files.')
  if (encoding) void reply.header('content-encoding', encoding.name)
  return reply
    .headers({ 'cache-control': caching, vary: 'Accept-Encoding' })
    .type(type ?? '')
    .send(content)
}

function encodingFor({ headers }: FastifyRequest): { readonly name: string; readonly suffix: string } | undefined {
  const acceptedEncodings = headers['accept-encoding']?.toString() ?? ''
  if (/\bbr\b(?!;q=0(?:\.0*)?(?:,|$))/.test(acceptedEncodings)) return { name: 'br', suffix: 'br' }
  return /\bgzip\b(?!;q=0(?:\.0*)?(?:,|$))/.test(acceptedEncodings) ? { name: 'gzip', suffix: 'gz' } : undefined
}

/** The executable has compressed files only: browsers ask for them. */
function contentOf(file: string, suffix: string | undefined): Buffer | undefined {
  if (suffix !== undefined) return assetOf(`${file}.${suffix}`)
  const compressedContent = assetOf(`${file}.gz`)
  return compressedContent && gunzipSync(compressedContent)
}

/** Undefined for a file that the build has not made. */
function assetOf(name: string): Buffer | undefined {
  try {
    return readAsset(`ui/${name}`)
  } catch {
    return undefined
  }
}
