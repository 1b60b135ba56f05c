/** Routes for logins of browsers, and for the one-time codes that links to the dashboard have. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import type { Access } from '../../access/access.ts'
import type { LoginOrigin } from '../../access/login-codes.ts'
import type { Logins } from '../../access/logins.ts'
import { CreatedLogin, CreateLogin, LoginCode, LoginList } from '../../contract/login.ts'
import { Problem } from '../../contract/problem.ts'
import { tokenIn } from '../guards/auth.ts'
import { accessOf } from '../guards/authorize.ts'
import type { LoginSupport } from '../guards/find-login.ts'
import { endedCookie, loginCookie, requireOwnPage } from '../guards/find-login.ts'
import type { CheckKey } from '../guards/first-frame-key.ts'
import type { RefuseKey } from '../guards/require-key.ts'
import { isLoopbackText } from '../../security/own-address.ts'
import { describeRoute } from '../openapi/describe-route.ts'

type LoginRouteDeps = {
  readonly logins: LoginSupport
  readonly checkKey: CheckKey
  readonly refuseKey: RefuseKey
}

/** Cookies and storage of the host belong to other servers, too: the page removes what it has kept for the login. */
const CLEAR = '"cache"'

const ByLoginId = z.strictObject({ login_id: z.uuid().toLowerCase() })

type LoginRoutes = FastifyPluginAsyncZod<LoginRouteDeps>

export const loginRoutes: LoginRoutes = async (app, deps) => {
  await creation(app, deps)
  await listAndEnd(app, deps)
  await codes(app, deps)
}

const describe = describeRoute('keys')

const creation: LoginRoutes = async (app, { logins, checkKey, refuseKey }) => {
  /** Throws `unauthorized`. */
  async function redeem(request: FastifyRequest, openedLogins: Logins, { key, code }: CreateLogin) {
    if (key !== undefined) {
      await checkKey(request, `Bearer ${key}`)
      return { access: accessOf(request), origin: openedLogins.originOf(key, accessOf(request)) }
    }
    const redeemedCode = await openedLogins.codes.redeem(code ?? '')
    if (!redeemedCode) return await refuseKey(request, badCode())
    request.access = redeemedCode.access
    return redeemedCode
  }

  app.post(
    '/logins',
    {
      // The key, or the code, is in the body.
      config: { public: true, scopes: [] },
      schema: {
        ...describe('createLogin', 'Log in with a key or a one-time code: a cookie, and a value for X-Login', [
          'unauthorized',
          'forbidden',
          'origin_refused',
          'insecure_login',
          'too_many_attempts',
          'limit_reached',
        ]),
        body: CreateLogin,
        response: { 201: CreatedLogin },
      },
    },
    async (request, reply) => {
      const { headers, body } = request
      // Programs send neither.
      if ((headers['sec-fetch-site'] ?? headers.origin) !== undefined) requireOwnPage(request, logins)
      requireSafeWay(request, logins)
      const openedLogins = await logins.open()
      const redemption: { access: Access; origin: LoginOrigin } = await redeem(request, openedLogins, body)
      const wish = { ...redemption, scopes: body.scopes, userAgent: headers['user-agent'] }
      const { login, value, cookie } = await openedLogins.create(wish)
      void reply.header('set-cookie', loginCookie(request, logins.cookieId(), cookie))
      return await reply
        .code(201)
        .header('cache-control', 'no-store')
        .send({ ...login, value })
    },
  )
}

const listAndEnd: LoginRoutes = async (app, { logins }) => {
  const logOut = (request: FastifyRequest, reply: FastifyReply) =>
    reply
      .code(204)
      .header('set-cookie', endedCookie(request, logins.cookieId()))
      .header('clear-site-data', CLEAR)
      .send()

  app.get(
    '/logins',
    { schema: { ...describe('listLogins', 'List the logins that you can end'), response: { 200: LoginList } } },
    async (request) => ({ items: await (await logins.open()).list(accessOf(request)) }),
  )

  app.delete(
    '/logins/:login_id',
    {
      schema: {
        ...describe('deleteLogin', 'End a login; its streams end at once', ['login_not_found']),
        params: ByLoginId,
        response: { 204: z.undefined().describe('The login has ended.') },
      },
    },
    async (request, reply) => {
      const { login_id: id } = request.params
      const access = accessOf(request)
      await (await logins.open()).end(access, id)
      return id === access.loginId ? logOut(request, reply) : reply.code(204).send()
    },
  )
}

const codes: LoginRoutes = async (app, { logins }) => {
  app.post(
    '/login-codes',
    {
      schema: {
        ...describe('createLoginCode', 'Get a one-time code for a login with the same key'),
        response: { 201: LoginCode },
      },
    },
    async (request, reply) => {
      const [token, access] = [tokenIn(request.headers.authorization), accessOf(request)]
      if (token === undefined)
        throw new Problem('forbidden', 'A login cannot make codes for further logins. Send the key itself.')
      const openedLogins = await logins.open()
      const code = await openedLogins.codes.issue(openedLogins.originOf(token, access), access)
      return reply.code(201).header('cache-control', 'no-store').send(code)
    },
  )
}

const badCode = () =>
  new Problem(
    'unauthorized',
    'The code is not valid: it was used, or has expired. Get a new link with agent-server dashboard.',
  )

/**
 * Refuses http from another machine: the key and both halves of the login could be read on the way. Throws
 * `insecure_login`. What comes through a proxy may come from another machine, whatever the address of the proxy is.
 */
function requireSafeWay(
  { protocol, ip, headers, hostname }: FastifyRequest,
  { isInsecureAllowed }: LoginSupport,
): void {
  const isDirect =
    OF_PROXIES.every((name) => headers[name] === undefined) && isLoopbackText(ip) && isLocalName(hostname)
  if (isInsecureAllowed || protocol === 'https' || isDirect) return
  throw new Problem(
    'insecure_login',
    'Over http, logins are accepted from this machine only. Use https; behind a proxy with TLS, set OPENHANDS_TRUST_PROXY to its address.',
  )
}

/** Proxies send at least one of them, unless they are configured to send none. */
const OF_PROXIES = ['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'x-real-ip', 'forwarded', 'via']

const isLocalName = (name: string): boolean =>
  name === 'localhost' || name.endsWith('.localhost') || isLoopbackText(name.replaceAll(/[[\]]/g, ''))
