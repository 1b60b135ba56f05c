/** Routes for API keys and for stream tickets. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import {
  ApiKey,
  ApiKeyList,
  CreatedKey,
  CreateKey,
  CreateStreamTicket,
  Me,
  RotateKey,
  Scope,
  StreamTicket,
} from '../../contract/key.ts'
import { Problem } from '../../contract/problem.ts'
import type { Access } from '../../access/access.ts'
import type { ApiKeys } from '../../access/api-keys.ts'
import type { Tickets } from '../../access/stream-tickets.ts'
import { parseJailPath } from '../../files/jail/jail-path.ts'
import { describeRoute } from '../openapi/describe-route.ts'
import type { Authorize } from '../guards/authorize.ts'
import { accessOf } from '../guards/authorize.ts'

type KeyRouteDeps = { readonly apiKeys: ApiKeys; readonly tickets: Tickets; readonly authorize: Authorize }

const ByKeyId = z.strictObject({ key_id: z.uuid().toLowerCase() })

export const keyRoutes: FastifyPluginAsyncZod<KeyRouteDeps> = async (app, deps) => {
  registerKeys(app, deps)
  registerTickets(app, deps)
}

function describeAccess(access: Access): Me {
  const { key, limits, loginId } = access
  return {
    kind: key ? 'api_key' : 'master',
    ...(key && { key_id: key.id, name: key.name }),
    scopes: Scope.options.filter((scope) => access.allows(scope)),
    ...(limits.conversations && { conversations: [...limits.conversations] }),
    ...(limits.userId !== undefined && { user_id: limits.userId }),
    ...(limits.profiles && { profiles: [...limits.profiles] }),
    ...(loginId !== undefined && { login_id: loginId }),
  }
}

function registerKeys(app: Parameters<typeof keyRoutes>[0], { apiKeys }: KeyRouteDeps): void {
  const describe = describeRoute('keys')

  app.post(
    '/keys',
    {
      schema: {
        ...describe('createKey', 'Create an API key with scopes; the key is returned only once', ['limit_reached']),
        body: CreateKey,
        response: { 201: CreatedKey },
      },
    },
    async (request, reply) => {
      const createdKey = await apiKeys.create(request.body)
      return reply.code(201).header('location', `/keys/${createdKey.id}`).send(createdKey)
    },
  )

  app.get(
    '/keys',
    { schema: { ...describe('listKeys', 'List the API keys'), response: { 200: ApiKeyList } } },
    async () => ({ items: await apiKeys.list() }),
  )

  app.get('/me', { schema: { ...describe('me', 'Get what the key allows'), response: { 200: Me } } }, async (request) =>
    describeAccess(accessOf(request)),
  )

  app.get(
    '/keys/:key_id',
    {
      schema: {
        ...describe('getKey', 'Get an API key', ['key_not_found']),
        params: ByKeyId,
        response: { 200: ApiKey },
      },
    },
    async (request) => apiKeys.get(request.params.key_id),
  )

  app.post(
    '/keys/:key_id/rotate',
    {
      schema: {
        ...describe('rotateKey', 'Replace an API key; the previous one stays valid for the overlap', ['key_not_found']),
        params: ByKeyId,
        body: RotateKey.optional(),
        response: { 200: CreatedKey },
      },
    },
    (request) => apiKeys.rotate(request.params.key_id, request.body ?? RotateKey.parse({})),
  )

  app.delete(
    '/keys/:key_id',
    {
      schema: {
        ...describe('deleteKey', 'Revoke an API key; its streams end at once', ['key_not_found']),
        params: ByKeyId,
        response: { 204: z.undefined().describe('The key is revoked.') },
      },
    },
    async (request, reply) => {
      await apiKeys.revoke(request.params.key_id)
      return reply.code(204).send()
    },
  )
}

function registerTickets(app: Parameters<typeof keyRoutes>[0], { tickets, authorize }: KeyRouteDeps): void {
  app.post(
    '/stream-tickets',
    {
      schema: {
        ...describeRoute('keys')('createStreamTicket', 'Get a ticket for one stream or one download in a browser', [
          'conversation_not_found',
          'unsafe_path',
        ]),
        body: CreateStreamTicket,
        response: { 201: StreamTicket },
      },
    },
    async (request, reply) => {
      const access = accessOf(request)
      const { conversation_id: id, file } = request.body
      if (file !== undefined) access.require('files')
      if (id !== undefined) await authorize.conversation(access, id)
      const path = file === undefined ? undefined : parseJailPath(file).text
      if (path === '')
        throw new Problem('invalid_request', 'file: names the workdir; a ticket downloads a file or a directory in it.')
      const ticket = await tickets.issue(access, { ...request.body, file: path })
      return reply.code(201).header('cache-control', 'no-store').send(ticket)
    },
  )
}
