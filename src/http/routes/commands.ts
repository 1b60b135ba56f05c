/** Routes for the commands that clients run in a conversation: run, list, get, end. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import {
  Command,
  CommandOutcome,
  CommandPage,
  CommandStarted,
  ListCommands,
  RunCommand,
} from '../../contract/values/command.ts'
import { ConversationId } from '../../contract/conversation.ts'
import type { ConversationManager } from '../../conversations/manager.ts'
import { accessOf } from '../guards/authorize.ts'
import { closeSignal } from '../request/close-signal.ts'
import { describeRoute } from '../openapi/describe-route.ts'
import { idempotencyOf, KeyHeader } from '../request/idempotency-key.ts'
import { ById, CONVERSATION } from '../openapi/conversation-params.ts'

export const ByCommand = z.strictObject({ id: ConversationId, command_id: z.uuid().toLowerCase() })

/** Errors of every route of one command. */
export const COMMAND = [...CONVERSATION, 'command_not_found'] as const

export const commandRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (app, { manager }) => {
  const describe = describeRoute('commands')

  app.post(
    '/conversations/:id/commands',
    {
      schema: {
        ...describe('runCommand', 'Run a command in a shell session, or in the background', [
          ...CONVERSATION,
          'session_busy',
          'denied_by_rule',
          'limit_reached',
          'idempotency_in_flight',
          'idempotency_mismatch',
          'outcome_unknown',
          'storage_full',
        ]),
        params: ById,
        headers: KeyHeader,
        body: RunCommand,
        response: { 200: CommandOutcome, 202: CommandStarted.describe('With `background`.') },
      },
    },
    async (request, reply) => {
      const { commands } = (await manager.open(request.params.id)).exec
      const idempotency = idempotencyOf(request)
      const { background, kill_on_disconnect } = request.body
      if (background) {
        const startedCommand = await commands.start(request.body, { idempotency })
        const location = `/conversations/${request.params.id}/commands/${startedCommand.command_id}`
        return reply.code(202).header('location', location).send(startedCommand)
      }
      const signal = kill_on_disconnect ? closeSignal(reply) : undefined
      const outcome = await commands.run(request.body, { idempotency, signal })
      accessOf(request).requireValid()
      return reply.code(200).send(outcome)
    },
  )

  app.get(
    '/conversations/:id/commands',
    {
      schema: {
        ...describe('listCommands', 'List commands, newest first', [...CONVERSATION, 'invalid_cursor']),
        params: ById,
        querystring: ListCommands,
        response: { 200: CommandPage },
      },
    },
    async (request) => (await manager.open(request.params.id)).exec.commands.list(request.query),
  )

  app.get(
    '/conversations/:id/commands/:command_id',
    {
      schema: {
        ...describe('getCommand', 'Get a command', COMMAND),
        params: ByCommand,
        response: { 200: Command },
      },
    },
    async (request) => (await manager.open(request.params.id)).exec.commands.get(request.params.command_id),
  )

  app.delete(
    '/conversations/:id/commands/:command_id',
    {
      schema: {
        ...describe('endCommand', 'End a command and all processes that it started; idempotent', COMMAND),
        params: ByCommand,
        response: { 204: z.undefined().describe('All its processes have ended. Its record is kept.') },
      },
    },
    async (request, reply) => {
      const { commands } = (await manager.open(request.params.id)).exec
      await commands.end(request.params.command_id)
      return reply.code(204).send()
    },
  )
}
