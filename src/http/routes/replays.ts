/** Routes for replays: create, list, get and cancel. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { CreateReplay, ListReplays, Replay, ReplayPage } from '../../contract/replay.ts'
import type { Replays } from '../../replays/replays.ts'
import type { Access } from '../../access/access.ts'
import { accessOf } from '../guards/authorize.ts'
import type { Authorize } from '../guards/authorize.ts'
import { mayReplay, ownKey } from '../guards/limited-requests.ts'
import { describeRoute } from '../openapi/describe-route.ts'
import { KeyHeader, idempotencyOf } from '../request/idempotency-key.ts'

const OneReplay = z.strictObject({ replay_id: z.uuid().toLowerCase() })

type ReplayRouteDeps = { readonly replays: Replays; readonly authorize: Authorize }

export const replayRoutes: FastifyPluginAsyncZod<ReplayRouteDeps> = async (app, { replays, authorize }) => {
  const describe = describeRoute('replays')

  app.post(
    '/replays',
    {
      schema: {
        ...describe('createReplay', 'Do the work of conversations once more, and compare how it ends', [
          'conversation_not_found',
          'conversation_deleted',
          'conversation_damaged',
          'cursor_ahead',
          'limit_reached',
          'idempotency_in_flight',
          'idempotency_mismatch',
          'storage_full',
        ]),
        headers: KeyHeader,
        body: CreateReplay,
        response: { 201: Replay.describe('The replay as it was created.') },
      },
    },
    async (request, reply) => {
      const access = accessOf(request)
      mayReplay(access, request.body)
      for (const id of request.body.conversation_ids) await authorize.conversation(access, id)
      const replay = await replays.post(request.body, ownKey(access, idempotencyOf(request)))
      return reply.code(201).header('location', `/replays/${replay.id}`).send(shownTo(access, replay))
    },
  )

  app.get(
    '/replays',
    {
      schema: {
        ...describe('listReplays', 'List replays', ['invalid_cursor']),
        querystring: ListReplays,
        response: { 200: ReplayPage },
      },
    },
    async (request) => await replays.list(request.query, seenBy(accessOf(request))),
  )

  app.get(
    '/replays/:replay_id',
    {
      schema: {
        ...describe('getReplay', 'Get a replay with its table', ['replay_not_found']),
        params: OneReplay,
        response: { 200: Replay },
      },
    },
    async (request) => await replays.get(request.params.replay_id, seenBy(accessOf(request))),
  )

  app.delete(
    '/replays/:replay_id',
    {
      schema: {
        ...describe('cancelReplay', 'Cancel a replay; an ended one is not changed', ['replay_not_found']),
        params: OneReplay,
        response: { 200: Replay.describe('The replay after all forks have ended.') },
      },
    },
    async (request) => {
      const access = accessOf(request)
      return shownTo(access, await replays.cancel(request.params.replay_id, seenBy(access)))
    },
  )
}

const seenBy = (access: Access) => (source: Parameters<Access['sees']>[0]) => access.sees(source)

/** Messages can repeat what the conversation says. */
function shownTo(access: Access, replay: Replay): Replay {
  if (access.allows('read')) return replay
  return { ...replay, rows: replay.rows.map(({ message: _message, ...row }) => row) }
}
