/**
 * Logins in requests: the two halves of a login, and the cookie that is one of them. The only file that reads or writes a
 * cookie. A page of another origin must not use a login: it cannot send the header, and unsafe methods need proof of the
 * browser that the request comes from a page of this server.
 */
import type { FastifyRequest } from 'fastify'
import type { Access } from '../../access/access.ts'
import type { Logins } from '../../access/logins.ts'
import { LOGIN_HEADER, LOGIN_LIFETIME_MS } from '../../contract/login.ts'
import { Problem } from '../../contract/problem.ts'

export type LoginSupport = {
  /** Loads the logins. */
  readonly open: () => Promise<Logins>
  /** Random, of the data directory: servers on other ports of this host share its cookies. */
  readonly cookieId: () => string
  /** Logins over plain http from other machines are permitted. */
  readonly isInsecureAllowed: boolean
}

type Cookie = Pick<FastifyRequest, 'protocol'>
type FromPage = Pick<FastifyRequest, 'headers' | 'protocol' | 'host'>

const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

export const hasLogin = ({ headers }: FastifyRequest): boolean => headers[LOGIN_HEADER] !== undefined

/** Throws `unauthorized`, or `origin_refused`. Without a cookie, nothing is loaded. */
export async function findLogin(request: FastifyRequest, support: LoginSupport): Promise<Access> {
  const { open, cookieId } = support
  const { method, headers } = request
  if (!SAFE.has(method)) requireOwnPage(request, support)
  const cookies = cookiesIn(headers.cookie, nameOf(request, cookieId()))
  const value = headers[LOGIN_HEADER]
  const isComplete = cookies.length > 0 && typeof value === 'string'
  const access = isComplete ? await (await open()).find(value, cookies) : undefined
  if (access) return access
  throw new Problem(
    'unauthorized',
    isComplete
      ? 'The login is not valid: it has ended, or its key has. Log in again with POST /logins.'
      : 'X-Login is one half of a login, and the cookie of the other half is missing. Log in again with POST /logins.',
  )
}

/** No script can set the headers that say where a request comes from. Throws `origin_refused`. */
export function requireOwnPage(
  { headers, protocol, host }: FromPage,
  { isInsecureAllowed }: Pick<LoginSupport, 'isInsecureAllowed'>,
): void {
  const { 'sec-fetch-site': site, origin } = headers
  if (site === 'same-origin') return
  // Over http, browsers send `Sec-Fetch-Site` to their own machine only.
  if (isInsecureAllowed && site === undefined && origin === `${protocol}://${host}`) return
  throw new Problem(
    'origin_refused',
    'Requests that change something by a login must come from a page of this server: the browser says so with Sec-Fetch-Site: same-origin. Programs send a key in the header Authorization.',
  )
}

export const loginCookie = (request: Cookie, id: string, cookie: string): string =>
  cookieOf(request, id, cookie, LOGIN_LIFETIME_MS / 1000)

export const endedCookie = (request: Cookie, id: string): string => cookieOf(request, id, '', 0)

const isSecure = ({ protocol }: Cookie): boolean => protocol === 'https'

/** Browsers accept a cookie with `__Host-` over https only, from this host only. */
const nameOf = (request: Cookie, id: string): string => `${isSecure(request) ? '__Host-' : ''}agent-server-login-${id}`

function cookieOf(request: Cookie, id: string, value: string, seconds: number): string {
  const pair = `${nameOf(request, id)}=${value}`
  return `${pair}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict${isSecure(request) ? '; Secure' : ''}`
}

/** Any number: servers on other ports can set some of the same name, for longer paths, which come before that of the login. */
function cookiesIn(header: string | undefined, name: string): string[] {
  const pairs = (header ?? '').split(';').map((pair) => pair.trim())
  return pairs.filter((pair) => pair.startsWith(`${name}=`)).map((pair) => pair.slice(name.length + 1))
}
