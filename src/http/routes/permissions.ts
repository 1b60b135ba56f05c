/** Routes for pending tool calls: list, approve, reject. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { ConversationId } from '../../contract/conversation.ts'
import {
  ApproveRequest,
  DecidePermission,
  PendingPermissions,
  PermissionAnswer,
  RejectRequest,
} from '../../contract/permission.ts'
import type { ConversationManager } from '../../conversations/registry/manager.ts'
import { describeRoute } from '../describe-route.ts'
import { ById, CONVERSATION } from './conversation-params.ts'

export const permissionRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (app, { manager }) => {
  const describe = describeRoute('permissions')
  const decided = [...CONVERSATION, 'conversation_from_newer_version', 'storage_full', 'permission_not_found'] as const

  app.get(
    '/conversations/:id/permissions',
    {
      schema: {
        ...describe('listPermissions', 'List the tool calls that wait for a decision', CONVERSATION),
        params: ById,
        response: { 200: PendingPermissions },
      },
    },
    async (request) => (await manager.open(request.params.id)).approvals.pending(),
  )

  app.post(
    '/conversations/:id/permissions/:request_id',
    {
      schema: {
        ...describe('decidePermission', 'Allow or deny calls, by id and by the hash of the call as it was shown', [
          ...decided,
          'input_changed',
          'already_decided',
          'nothing_pending',
        ]),
        params: z.strictObject({ id: ConversationId, request_id: z.uuid().toLowerCase() }),
        body: DecidePermission,
        response: { 200: PermissionAnswer },
      },
    },
    async (request) => {
      const conversation = await manager.open(request.params.id)
      return await conversation.approvals.decide(request.params.request_id, request.body.decisions)
    },
  )

  app.post(
    '/conversations/:id/approve',
    {
      schema: {
        ...describe('approve', 'Allow all waiting calls of a request, as they were shown', [
          ...decided,
          'nothing_pending',
          'already_decided',
        ]),
        params: ById,
        body: ApproveRequest,
        response: { 200: PermissionAnswer },
      },
    },
    async (request) => (await manager.open(request.params.id)).approvals.approve(request.body.request_id),
  )

  app.post(
    '/conversations/:id/reject',
    {
      schema: {
        ...describe('reject', 'Refuse all waiting calls and end the run', [
          ...CONVERSATION,
          'storage_full',
          'nothing_pending',
        ]),
        params: ById,
        body: RejectRequest.optional(),
        response: { 200: PermissionAnswer },
      },
    },
    async (request) => (await manager.open(request.params.id)).approvals.reject(request.body?.reason),
  )
}
