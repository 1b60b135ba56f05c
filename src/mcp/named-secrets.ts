/** Replaces the names of secrets in the configuration of a server by their values, just before they are used. */
import { createHash } from 'node:crypto'
import { MASK } from '../contract/values/llm-config.ts'
import type { McpOauth } from '../contract/mcp/mcp-oauth.ts'
import type { McpServer, McpServers } from '../contract/mcp/mcp-server.ts'
import { canonicalJson } from '../lib/json/canonical-json.ts'

/** `${NAME}`, or `${NAME:-text}` with a text for when there is no such secret. */
// oxlint-disable-next-line regexp/time -- `upToLastBrace` has an end for each beginning
const REFERENCE = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g

export const namesSecrets = (text: string): boolean => upToLastBrace(text).search(REFERENCE) >= 0

const upToLastBrace = (text: string): string => text.slice(0, text.lastIndexOf('}') + 1)

export type CredentialField = 'env' | 'headers' | 'oauth'

type AddressedServer = Pick<McpServer, 'url' | 'command' | 'args' | 'env' | 'oauth'>

/**
 * The receiver of a credential: all of the origin of a URL, an authorization server that it names, or one program with its
 * arguments and its environment. `server` has masked credentials.
 */
function receiverOf({ url, command, args = [], env = {}, oauth }: AddressedServer, field: CredentialField): string {
  if (field === 'env' || url === undefined) return canonicalJson([command ?? null, args, env])
  const origin = URL.parse(url)?.origin ?? url
  return field === 'oauth' ? canonicalJson([origin, oauth?.issuer ?? null]) : origin
}

/** Returns the place of a credential of the configuration. Nothing else than its receiver gets it. */
export const placeOf = (name: string, server: AddressedServer, field: CredentialField, key: string): string =>
  `${formerPlaceOf(name, field, key)} ${createHash('sha256').update(receiverOf(server, field)).digest('hex').slice(0, 16)}`

/** Returns the place that it had when servers could not be changed. */
const formerPlaceOf = (name: string, field: CredentialField, key: string): string => `${name} ${field} ${key}`

/** The places of all credentials of the configuration. */
export function placesIn(servers: McpServers): Set<string> {
  const places = Object.entries(servers).flatMap(([name, server]) => {
    const maskedFields = (['env', 'headers'] as const).flatMap((field) =>
      Object.entries(server[field] ?? {}).flatMap(([key, value]) => (value === MASK ? [[field, key] as const] : [])),
    )
    const all =
      server.oauth?.client_secret === MASK ? [...maskedFields, ['oauth', 'client_secret'] as const] : maskedFields
    return all.flatMap(([field, key]) => [placeOf(name, server, field, key), formerPlaceOf(name, field, key)])
  })
  return new Set(places)
}

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
          value === MASK ? credentialAt(name, server, [field, key], source) : fill(`${field}.${key}`, value),
        ]),
      ),
    }
  return {
    ...server,
    ...(server.args && { args: server.args.map((arg, at) => fill(`args.${at}`, arg)) }),
    ...(server.url !== undefined && { url: fill('url', server.url) }),
    ...fillAll('env'),
    ...fillAll('headers'),
    ...(server.oauth && { oauth: fillOauth(name, server, server.oauth, source) }),
  }
}

function fillIn(field: string, text: string, { secret }: SecretSource): string {
  const closedText = upToLastBrace(text)
  const filledText = closedText.replaceAll(REFERENCE, (_, name: string, otherwise: string | undefined) => {
    const value = secret(name) ?? otherwise
    if (value !== undefined) return value
    throw new MissingSecret(
      `${field} names the secret ${name}, which this conversation does not have. Send it with PUT /conversations/{id}/secrets, then reconnect the server.`,
    )
  })
  return filledText + text.slice(closedText.length)
}

function fillOauth(name: string, server: McpServer, oauth: McpOauth, source: SecretSource): McpOauth {
  const { client_secret: secret } = oauth
  if (secret === undefined) return oauth
  const value =
    secret === MASK
      ? credentialAt(name, server, ['oauth', 'client_secret'], source)
      : fillIn(`${name}.oauth.client_secret`, secret, source)
  return { ...oauth, client_secret: value }
}

function credentialAt(
  name: string,
  server: McpServer,
  [field, key]: readonly [CredentialField, string],
  { credential }: SecretSource,
): string {
  const value = credential(placeOf(name, server, field, key)) ?? credential(formerPlaceOf(name, field, key))
  if (value !== undefined) return value
  throw new MissingSecret(
    `${name}.${field}.${key} cannot be decrypted; start the server with the key it was stored with.`,
  )
}
