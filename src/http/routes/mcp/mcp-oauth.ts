/** Routes that complete the authorization of MCP servers: for the browser of the user, and for clients. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { ConversationId } from '../../../contract/conversation.ts'
import { AuthorizeMcpServer, OAUTH_CALLBACK } from '../../../contract/mcp/mcp-oauth.ts'
import { McpServerView } from '../../../contract/mcp/mcp-status.ts'
import { Problem } from '../../../contract/problem.ts'
import type { ConversationManager } from '../../../conversations/manager.ts'
import type { PendingAuthorization, PendingAuthorizations } from '../../../mcp/oauth/pending-authorizations.ts'
import { conversationOfState } from '../../../mcp/oauth/pending-authorizations.ts'
import type { Peers } from '../../guards/forward-to-owner.ts'
import { forwardPublic } from '../../guards/forward-to-owner.ts'
import { describeRoute } from '../../openapi/describe-route.ts'
import { CONVERSATION } from '../../openapi/conversation-params.ts'

export type McpOauthDeps = {
  readonly manager: ConversationManager
  readonly pending: PendingAuthorizations
  /** Undefined: no other instance has conversations. */
  readonly peers: Peers | undefined
}

export const mcpOauthRoutes: FastifyPluginAsyncZod<McpOauthDeps> = async (app, { manager, pending, peers }) => {
  const describe = describeRoute('conversations')

  const finish = async (authorization: PendingAuthorization | undefined, answer: URLSearchParams) => {
    if (!authorization) throw unknownState()
    using stack = new DisposableStack()
    stack.defer(manager.hold(authorization.conversationId))
    return await (await manager.open(authorization.conversationId)).mcp.authorize(authorization, answer)
  }

  app.get(
    OAUTH_CALLBACK,
    {
      config: { public: true },
      schema: {
        ...describe('finishMcpAuthorization', 'Where browsers are sent back to after an MCP server was authorized', [
          'mcp_authorization_failed',
        ]),
        // Authorization servers may add others.
        querystring: z.object({
          state: ascii(128).optional().describe('As in the authorization URL.'),
          code: ascii(3072).optional().describe('The authorization code. A longer one: `POST …/authorize`.'),
          iss: ascii(512).optional().describe('The issuer that sends the browser back.'),
          error: ascii(128).optional().describe('Why there is no code.'),
        }),
        response: {
          200: z
            .string()
            .describe('A text for the user.')
            .meta({ examples: [AUTHORIZED] }),
        },
      },
    },
    async (request, reply) => {
      const { state = '', ...rest } = request.query
      try {
        const authorization = pending.take(state)
        const id = conversationOfState(state)
        // The instance that has asked the user knows the state.
        const isElsewhere = peers && !authorization && id !== undefined
        if (isElsewhere && (await forwardPublic(request, reply, peers, id))) return await reply
        await finish(authorization, paramsOf(rest))
      } catch (error) {
        // A browser with the state has no key: what happened in the conversation is not for this page.
        throw error instanceof Problem && error.code === 'mcp_authorization_failed' ? error : unknownState(error)
      }
      return await reply.type('text/plain; charset=utf-8').send(AUTHORIZED)
    },
  )

  app.post(
    '/conversations/:id/mcp/:server_name/authorize',
    {
      schema: {
        ...describe('authorizeMcpServer', 'Complete the authorization of an MCP server with a code', [
          ...CONVERSATION,
          'mcp_server_not_found',
          'mcp_authorization_failed',
        ]),
        params: z.strictObject({ id: ConversationId, server_name: z.string().min(1).max(100) }),
        body: AuthorizeMcpServer,
        response: { 200: McpServerView },
      },
    },
    async (request) => {
      const { id, server_name } = request.params
      const { state, ...answer } = request.body
      await manager.open(id)
      const isMeant = (authorization: PendingAuthorization) =>
        authorization.conversationId === id && authorization.server === server_name
      return await finish(pending.take(state, isMeant), paramsOf(answer))
    },
  )
}

/** The characters that OAuth allows (RFC 6749, appendix A). With these lengths, every URL fits into the server's limit. */
const ascii = (length: number) =>
  z
    .string()
    .max(length)
    .regex(/^[\x20-\x7e]*$/, 'must be printable ASCII')

const paramsOf = (answer: Readonly<Record<string, string | undefined>>): URLSearchParams =>
  new URLSearchParams(Object.entries(answer).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])))

const AUTHORIZED = 'The MCP server is authorized. You can close this page.'

const unknownState = (cause?: unknown) =>
  new Problem(
    'mcp_authorization_failed',
    'This authorization was not asked for, or is complete, or took more than 10 minutes. Begin again at the authorization_url of the server.',
    { cause },
  )
