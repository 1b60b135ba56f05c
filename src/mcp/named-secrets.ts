/** Replaces the names of secrets in the configuration of a server by their values, just before they are used. */
import { MASK } from '../contract/llm-config.ts'
import type { McpOauth } from '../contract/mcp/mcp-oauth.ts'
import type { McpServer } from '../contract/mcp/mcp-server.ts'

/** `${NAME}`, or `${NAME:-text}` with a text for when there is no such secret. */
const REFERENCE = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g

export const namesSecrets = (text: string): boolean => text.search(REFERENCE) >= 0

type CredentialField = 'env' | 'headers' | 'oauth'

/** Where a credential of the configuration is stored. */
export const placeOf = (server: string, field: CredentialField, name: string): string => `${server} ${field} ${name}`

export type SecretSource = {
  /** A secret of the conversation. */
  readonly secret: (name: string) => string | undefined
  /** A credential that was sent inside the configuration. */
  readonly credential: (place: string) => string | undefined
}

/** A secret that is not there. Its message is for the user. */
export class MissingSecret extends Error {
  override readonly name = 'MissingSecret'
}

/** Throws `MissingSecret`. */
export function withSecrets(name: string, server: McpServer, source: SecretSource): McpServer {
  const fill = (field: string, text: string) => fillIn(`${name}.${field}`, text, source)
  const fillAll = (field: 'env' | 'headers') =>
    server[field] && {
      [field]: Object.fromEntries(
        Object.entries(server[field]).map(([key, value]) => [
          key,
          value === MASK ? credentialAt(name, field, key, source) : fill(`${field}.${key}`, value),
        ]),
      ),
    }
  return {
    ...server,
    ...(server.args && { args: server.args.map((arg, at) => fill(`args.${at}`, arg)) }),
    ...(server.url !== undefined && { url: fill('url', server.url) }),
    ...fillAll('env'),
    ...fillAll('headers'),
    ...(server.oauth && { oauth: fillOauth(name, server.oauth, source) }),
  }
}

function fillIn(field: string, text: string, { secret }: SecretSource): string {
  return text.replaceAll(REFERENCE, (_, name: string, otherwise: string | undefined) => {
    const value = secret(name) ?? otherwise
    if (value !== undefined) return value
    throw new MissingSecret(
      `${field} names the secret ${name}, which this conversation does not have. Send it with PUT /conversations/{id}/secrets, then reconnect the server.`,
    )
  })
}

function fillOauth(name: string, oauth: McpOauth, source: SecretSource): McpOauth {
  const { client_secret: secret } = oauth
  if (secret === undefined) return oauth
  const value =
    secret === MASK
      ? credentialAt(name, 'oauth', 'client_secret', source)
      : fillIn(`${name}.oauth.client_secret`, secret, source)
  return { ...oauth, client_secret: value }
}

function credentialAt(name: string, field: CredentialField, key: string, { credential }: SecretSource): string {
  const value = credential(placeOf(name, field, key))
  if (value !== undefined) return value
  throw new MissingSecret(
    `${name}.${field}.${key} cannot be decrypted; start the server with the key it was stored with.`,
  )
}
