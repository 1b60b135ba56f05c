/** What is stored of the authorization of one MCP server, encrypted: its tokens, and how the client is registered. */
import { z } from 'zod'

/** Members of an answer that are not listed are not kept. */
const Tokens = z.object({
  access_token: z.string(),
  token_type: z.string(),
  refresh_token: z.string().optional(),
  expires_in: z.number().optional(),
  scope: z.string().optional(),
  issuer: z.string().optional(),
})

const Client = z.object({
  client_id: z.string(),
  client_secret: z.string().optional(),
  client_secret_expires_at: z.number().optional(),
  token_endpoint_auth_method: z.string().optional(),
  redirect_uris: z.array(z.string()).optional(),
  issuer: z.string().optional(),
})

export const KeptAuthorization = z.object({
  /** The address of the server: nothing of it is for another one. */
  url: z.string(),
  tokens: Tokens.optional(),
  /** Registered dynamically. */
  client: Client.optional(),
  /** The issuer at which the configured client was used first. */
  issuer: z.string().optional(),
})
export type KeptAuthorization = z.infer<typeof KeptAuthorization>

/** Values that must not be shown. */
export const secretsOf = ({ tokens, client }: KeptAuthorization): string[] =>
  [tokens?.access_token, tokens?.refresh_token, client?.client_secret].filter((value) => value !== undefined)

/** The place where it is stored. A change is in effect at once; `write` resolves when it is durable. */
export type AuthorizationStore = {
  readonly read: () => KeptAuthorization | undefined
  readonly write: (authorization: KeptAuthorization) => Promise<void>
}
