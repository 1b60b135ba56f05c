/** The rights of a client in the header of a forwarded request: only a connection of another instance may bring them. */
import { z } from 'zod'
import { Access } from '../access/access.ts'
import { Scope } from '../contract/key.ts'

/** What the asked instance has found out about the client. */
export type Rights = { readonly fingerprint: string; readonly access: Access }

const SCHEME = 'Instance '

const SentRights = z.object({
  fingerprint: z.string(),
  key: z.object({ id: z.string(), name: z.string() }).optional(),
  scopes: z.array(Scope),
  conversations: z.array(z.string()).optional(),
  userId: z.string().optional(),
  profiles: z.array(z.string()).optional(),
  loginId: z.string().optional(),
})

export function rightsHeader({ fingerprint, access }: Rights): string {
  const { key, scopes, limits, loginId } = access
  const { conversations, userId, profiles } = limits
  const rights = {
    fingerprint,
    key,
    scopes,
    conversations: conversations && [...conversations],
    userId,
    profiles: profiles && [...profiles],
    loginId,
  }
  return SCHEME + Buffer.from(JSON.stringify(rights)).toString('base64url')
}

/** Returns undefined for any other header. The asked instance ends the request when the key ends. */
export function readRights(header: string | undefined): Rights | undefined {
  if (!header?.startsWith(SCHEME)) return undefined
  const text = Buffer.from(header.slice(SCHEME.length), 'base64url').toString()
  const { fingerprint, key, scopes, conversations, userId, profiles, loginId } = SentRights.parse(JSON.parse(text))
  const limits = {
    conversations: conversations && new Set(conversations),
    userId,
    profiles: profiles && new Set(profiles),
  }
  return { fingerprint, access: new Access(key, scopes, limits, new AbortController().signal, loginId) }
}
