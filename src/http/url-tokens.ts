/** Keys do not belong into URLs, which browsers, proxies and logs keep: such a request is refused, whatever else it has. */
import { Problem } from '../contract/problem.ts'

const NAMES: ReadonlySet<string> = new Set(
  ['token', 'access_token', 'auth_token', 'api_key', 'apikey', 'api-key'].concat([
    'key',
    'master_key',
    'authorization',
    'auth',
    'bearer',
    'session_api_key',
  ]),
)

/** Throws a `Problem` that repeats nothing of the URL. */
export function refuseTokensIn(url: string): void {
  const at = url.indexOf('?')
  if (at === -1) return
  for (const name of new URLSearchParams(url.slice(at)).keys()) {
    if (!NAMES.has(name.toLowerCase())) continue
    throw new Problem(
      'token_in_url',
      'A key in a URL is seen by many; send it as a header: Authorization: Bearer <OPENHANDS_MASTER_KEY>.',
    )
  }
}
