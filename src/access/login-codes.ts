/** One-time codes for a login: part of a link, so they work once, and only for a short time. Kept in memory by a server that is alone. */
import { z } from 'zod'
import type { LoginCode } from '../contract/login.ts'
import { LOGIN_CODE_LIFETIME_MS } from '../contract/login.ts'
import type { Access } from './access.ts'
import { hashCredential, makeCredential } from './credential.ts'

/** The credential that a login was made with: an API key, or a master key. */
export const Origin = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('api_key'), id: z.uuid(), name: z.string(), hash: z.string() }),
  z.object({ kind: z.literal('master'), hash: z.string() }),
])
export type LoginOrigin = z.infer<typeof Origin>

/** Unused codes; above it the oldest is removed. */
export const MAX_CODES = 1000

export type RedeemedCode = { readonly origin: LoginOrigin; readonly access: Access }

type IssuedCode = RedeemedCode & { readonly expiresAt: number }

export interface Codes {
  /** Makes a code for a login with these permissions. */
  issue(origin: LoginOrigin, access: Access): LoginCode | Promise<LoginCode>
  /** Uses the code up. Returns undefined if it was used, has expired, or its key has ended. */
  redeem(code: string): RedeemedCode | undefined | Promise<RedeemedCode | undefined>
}

export class LoginCodes implements Codes {
  /** The codes by hash, oldest first. */
  readonly #issued = new Map<string, IssuedCode>()
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
  }

  issue(origin: LoginOrigin, access: Access): LoginCode {
    const code = makeCredential('asc_')
    const expiresAt = this.#now() + LOGIN_CODE_LIFETIME_MS
    const [oldest] = this.#issued.keys()
    if (oldest !== undefined && this.#issued.size >= MAX_CODES) this.#issued.delete(oldest)
    this.#issued.set(hashCredential(code), { origin, access, expiresAt })
    return { code, expires_at: new Date(expiresAt).toISOString() }
  }

  redeem(code: string): RedeemedCode | undefined {
    const hash = hashCredential(code)
    const issuedCode = this.#issued.get(hash)
    this.#issued.delete(hash)
    return issuedCode && issuedCode.expiresAt > this.#now() && !issuedCode.access.ended.aborted ? issuedCode : undefined
  }
}
