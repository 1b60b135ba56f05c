/** Refuses keys in URLs, which browsers, proxies and logs store, even if the request has a valid key elsewhere. */
import { Problem } from '../../contract/problem.ts'

/** Endings of parameter names that suggest a credential; no parameter of this server ends like that. */
const CREDENTIAL =
  /(token|key|secret|jwt|auth|authorization|bearer|password|passwd|passphrase|pwd|credential|credentials|signature)$/

/** Throws a `Problem` that quotes nothing of the URL. */
export function refuseTokensIn(url: string): void {
  const at = url.indexOf('?')
  if (at === -1) return
  for (const name of new URLSearchParams(url.slice(at)).keys()) {
    if (!CREDENTIAL.test(name.toLowerCase())) continue
    throw new Problem(
      'token_in_url',
      'URLs end up in logs, so they must not contain a key. Send it as a header: Authorization: Bearer <OPENHANDS_MASTER_KEY>.',
    )
  }
}
