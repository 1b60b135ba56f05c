/** The redactor of the server's own secrets, and the warning about guessable ones. */
import type { Config } from '../config/config.ts'
import { findWeakness } from '../security/redaction/guessable-key.ts'
import type { Redactor } from '../security/redaction/redactor.ts'
import { createRedactor } from '../security/redaction/redactor.ts'
import type { AutomataOf } from '../security/redaction/shared-automata.ts'
import type { Logger } from '../telemetry/logger.ts'
import { proxyPasswords } from './proxy-passwords.ts'

type ServerSecrets = Config & { readonly localCredential: string }

/** Creates a redactor for each conversation, which adds its own secrets. */
export function createServerRedactor(
  {
    masterKeys,
    localCredential,
    secretKeys,
    databaseUrl,
    databaseSessionUrl,
    defaultLlm,
    vendorKeys,
    webSearch,
    environment,
  }: ServerSecrets,
  automataOf: AutomataOf,
  refresh?: (set: Redactor['set']) => void,
): Redactor {
  const { keyCommand } = defaultLlm
  const redactor = createRedactor(automataOf, keyCommand ? withPrinted : refresh)
  function withPrinted(set: Redactor['set']): void {
    redactor.setServerKey('LLM_API_KEY_COMMAND', ...(keyCommand?.printed ?? []))
    refresh?.(set)
  }
  redactor.setServerKey('OPENHANDS_MASTER_KEY', ...masterKeys, localCredential)
  redactor.setServerKey('OPENHANDS_SECRET_KEY', ...secretKeys.filter((key) => !masterKeys.includes(key)))
  if (databaseUrl !== undefined) redactor.setServerKey('OPENHANDS_DATABASE_URL', ...secretsOfUrl(databaseUrl))
  if (databaseSessionUrl !== undefined)
    redactor.setServerKey('OPENHANDS_DATABASE_SESSION_URL', ...secretsOfUrl(databaseSessionUrl))
  for (const { variable, key } of vendorKeys.all) redactor.setServerKey(variable, key)
  if (defaultLlm.api_key !== undefined && !defaultLlm.isVendorKey)
    redactor.setServerKey('LLM_API_KEY', defaultLlm.api_key)
  if (webSearch) redactor.setServerKey('TAVILY_API_KEY', webSearch.apiKey)
  for (const [variable, values] of proxyPasswords(environment)) redactor.set(variable, ...values)
  return redactor
}

/** The password also appears alone, and as the driver decodes it. */
function secretsOfUrl(url: string): string[] {
  const password = /^[^/]*\/\/[^/:]*:([^/]*)@/.exec(url)?.[1]
  if (!password) return [url]
  return [...new Set([url, password, decodeURIComponent(password)])]
}

/** The agent's output is redacted if it contains a server key, which lets an agent test guesses. */
export function warnOfGuessableKeys({ masterKeys, secretKeys }: Config, logger: Logger): void {
  const own = secretKeys.filter((key) => !masterKeys.includes(key))
  const namedSecrets = [
    ...masterKeys.map((key) => ['OPENHANDS_MASTER_KEY', key] as const),
    ...own.map((key) => ['OPENHANDS_SECRET_KEY', key] as const),
  ]
  for (const [name, key] of namedSecrets) {
    const weakness = findWeakness(key)
    if (weakness === undefined) continue
    logger.warn(`${name} can be guessed: ${weakness}; make one with \`openssl rand -hex 32\``)
  }
}
