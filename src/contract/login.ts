/** Logins on the wire: how a browser uses a key without keeping it. */
import { z } from 'zod'
import { Scope } from './key.ts'

/** The header with the half of a login that the page keeps; the other half is a cookie. */
export const LOGIN_HEADER = 'x-login'

/** A login ends when it was not used for this long, in milliseconds. */
export const LOGIN_IDLE_MS = 12 * 3_600_000
/** A login ends at this age. */
export const LOGIN_LIFETIME_MS = 30 * 24 * 3_600_000
/** How long a one-time code is valid. */
export const LOGIN_CODE_LIFETIME_MS = 60_000

const Credential = z.string().min(1).max(1000)

export const CreateLogin = z
  .strictObject({
    key: Credential.optional().describe('The master key, or an API key. The server does not store it.'),
    code: Credential.optional().describe('A one-time code from `POST /login-codes`.'),
    scopes: z
      .array(Scope)
      .min(1)
      .max(Scope.options.length)
      .optional()
      .describe('What the login allows, for example `["read"]`. Default: all that the key allows.'),
  })
  .refine(({ key, code }) => (key === undefined) !== (code === undefined), { error: 'needs either key or code' })
  .meta({ id: 'CreateLogin', examples: [{ key: 'ask_example', scopes: ['read'] }, { code: 'asc_example' }] })
export type CreateLogin = z.infer<typeof CreateLogin>

const LOGIN_EXAMPLE = {
  id: '0199a1f0-5c3e-7d12-9b1a-2f6d8c40a7e1',
  kind: 'api_key' as const,
  key_id: '0199a1f0-5c3e-7d12-9b1a-2f6d8c40a7e2',
  name: 'dashboard',
  scopes: ['read' as const],
  created_at: '2026-01-31T12:00:00.000Z',
  expires_at: '2026-03-02T12:00:00.000Z',
  is_current: true,
}

export const Login = z
  .object({
    id: z.uuid(),
    kind: z.enum(['master', 'api_key']).describe('The key that it was made with.'),
    key_id: z.uuid().optional(),
    name: z.string().optional().describe('The name of the API key.'),
    scopes: z.array(Scope).describe('All that the login allows; with `admin`, all scopes.'),
    user_agent: z.string().optional().describe('What the browser called itself at the login.'),
    created_at: z.iso.datetime(),
    last_used_at: z.iso.datetime().optional().describe('Exact to about a minute.'),
    expires_at: z.iso
      .datetime()
      .describe('The login ends then at the latest; before, after 12 hours without a request, or with its key.'),
    is_current: z.boolean().describe('True for the login of this request.'),
  })
  .meta({ id: 'Login', examples: [LOGIN_EXAMPLE] })
export type Login = z.infer<typeof Login>

export const CreatedLogin = Login.extend({
  value: z
    .string()
    .describe('For the header `X-Login` of each request. It works only with the cookie of this response.'),
}).meta({ id: 'CreatedLogin', examples: [{ ...LOGIN_EXAMPLE, value: 'asv_example' }] })
export type CreatedLogin = z.infer<typeof CreatedLogin>

export const LoginList = z.object({ items: z.array(Login) }).meta({ id: 'LoginList' })
export type LoginList = z.infer<typeof LoginList>

export const LoginCode = z
  .object({
    code: z.string().describe('For `POST /logins`. It can be used once.'),
    expires_at: z.iso.datetime(),
  })
  .meta({ id: 'LoginCode', examples: [{ code: 'asc_example', expires_at: '2026-01-31T12:01:00.000Z' }] })
export type LoginCode = z.infer<typeof LoginCode>
