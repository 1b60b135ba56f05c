/** Routes for the output and the standard input of a command. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { CommandInput, CommandOutput, ReadOutput } from '../../contract/values/command.ts'
import type { ConversationManager } from '../../conversations/manager.ts'
import { accessOf } from '../guards/authorize.ts'
import { closeSignal } from '../request/close-signal.ts'
import { describeRoute } from '../openapi/describe-route.ts'
import { ByCommand, COMMAND } from './commands.ts'

export const commandIoRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (app, { manager }) => {
  const describe = describeRoute('commands')

  app.get(
    '/conversations/:id/commands/:command_id/output',
    {
      schema: {
        ...describe(
          'readCommandOutput',
          'Read the output of a command from any byte offset, also while it runs',
          COMMAND,
        ),
        params: ByCommand,
        querystring: ReadOutput,
        response: { 200: CommandOutput },
      },
    },
    async (request, reply) => {
      const { commands } = (await manager.open(request.params.id)).exec
      const output = await commands.output(request.params.command_id, request.query, closeSignal(reply))
      accessOf(request).requireValid()
      return output
    },
  )

  app.post(
    '/conversations/:id/commands/:command_id/input',
    {
      schema: {
        ...describe('writeCommandInput', 'Write to the standard input of a command', [
          ...COMMAND,
          'input_closed',
          'limit_reached',
        ]),
        params: ByCommand,
        body: CommandInput,
        response: { 204: z.undefined().describe('The input was accepted for the command.') },
      },
    },
    async (request, reply) => {
      const { commands } = (await manager.open(request.params.id)).exec
      await commands.feed(request.params.command_id, request.body)
      return reply.code(204).send()
    },
  )
}
