/** One-time codes where several instances share a database: one that any of them has issued makes a login at any other one. */
import { z } from 'zod'
import type { LoginCode } from '../contract/login.ts'
import { LOGIN_CODE_LIFETIME_MS } from '../contract/login.ts'
import type { TicketTable } from '../storage/instances.ts'
import type { Access } from './access.ts'
import { hashCredential, makeCredential } from './credential.ts'
import type { Codes, LoginOrigin, RedeemedCode } from './login-codes.ts'
import { MAX_CODES, Origin } from './login-codes.ts'

const IssuedCode = z.object({ origin: Origin })

export type SharedCodesDeps = {
  readonly table: TicketTable
  /** Returns the permissions of the credential; undefined if it has ended. */
  readonly accessOf: (origin: LoginOrigin) => Promise<Access | undefined>
}

/** Stream tickets are in the same table. */
const HOLDER = 'login codes'
const placeOf = (code: string): string => `login code ${hashCredential(code)}`

export class SharedLoginCodes implements Codes {
  readonly #deps: SharedCodesDeps

  constructor(deps: SharedCodesDeps) {
    this.#deps = deps
  }

  async issue(origin: LoginOrigin): Promise<LoginCode> {
    const code = makeCredential('asc_')
    await this.#deps.table.add(
      { hash: placeOf(code), holder: HOLDER, value: JSON.stringify({ origin }) },
      { lifetimeMs: LOGIN_CODE_LIFETIME_MS, mostOfHolder: MAX_CODES },
    )
    return { code, expires_at: new Date(Date.now() + LOGIN_CODE_LIFETIME_MS).toISOString() }
  }

  async redeem(code: string): Promise<RedeemedCode | undefined> {
    const value = await this.#deps.table.take(placeOf(code))
    if (value === undefined) return undefined
    const { origin } = IssuedCode.parse(JSON.parse(value))
    const access = await this.#deps.accessOf(origin)
    return access && !access.ended.aborted ? { origin, access } : undefined
  }
}
