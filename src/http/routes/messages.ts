/** Routes that control the agent: post messages, run, pause. */
import type { FastifyRequest } from 'fastify'
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { ConversationId } from '../../contract/conversation.ts'
import { Compacted, CompactRequest } from '../../contract/compaction/request.ts'
import {
  PauseRequest,
  PostMessage,
  PostedMessage,
  RunOutcome,
  RunRequest,
  RunStarted,
  StatusAnswer,
  StoppedSubagent,
  WithdrawnMessage,
} from '../../contract/run.ts'
import type { ConversationManager } from '../../conversations/manager.ts'
import { KeyHeader, messageMarksOf } from '../request/idempotency-key.ts'
import { describeRoute } from '../openapi/describe-route.ts'
import { accessOf } from '../guards/authorize.ts'
import { mayRun } from '../guards/limited-requests.ts'
import { closeSignal } from '../request/close-signal.ts'
import { ById, CONVERSATION } from '../openapi/conversation-params.ts'

const OneSubagent = z.strictObject({ id: ConversationId, agent_id: z.uuid().toLowerCase() })

const OneMessage = z.strictObject({ id: ConversationId, message_id: z.uuid().toLowerCase() })

/** The problems of requests that begin a run. */
const BEGINS_RUN = [
  ...CONVERSATION,
  'already_running',
  'conversation_changed',
  'conversation_from_newer_version',
  'storage_full',
  'unknown_cost',
] as const

export const messageRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (app, { manager }) => {
  const describe = describeRoute('messages')

  app.post(
    '/conversations/:id/messages',
    {
      schema: {
        ...describe('postMessage', 'Send a message to the agent', [
          ...BEGINS_RUN,
          'idempotency_mismatch',
          'message_exists',
        ]),
        params: ById,
        headers: KeyHeader,
        body: PostMessage,
        response: { 200: PostedMessage.describe('The message with this `client_message_id`.'), 202: PostedMessage },
      },
    },
    async (request, reply) => {
      const { run_options: options } = request.body
      if (options) mayRun(accessOf(request), options)
      const conversation = await manager.open(request.params.id)
      const { idempotency, clientMessage } = messageMarksOf(request, request.body, request.headers['idempotency-key'])
      const { isKnown, ...answer } = await conversation.post(request.body, idempotency, { clientMessage })
      return reply.code(isKnown ? 200 : 202).send(answer)
    },
  )

  app.post(
    '/conversations/:id/run',
    {
      config: { outlivesOwner: true },
      schema: {
        ...describe('runConversation', 'Start the agent', [
          ...BEGINS_RUN,
          'already_continued',
          'waiting_for_confirmation',
          'waiting_for_input',
          'waiting_for_client',
        ]),
        params: ById,
        body: RunRequest.optional(),
        response: { 200: RunOutcome.describe('With `wait`.'), 202: RunStarted },
      },
    },
    async (request, reply) => {
      const { wait, timeout, ...limits } = request.body ?? RunRequest.parse({})
      mayRun(accessOf(request), { wait, ...limits })
      const conversation = request.remote ?? (await manager.open(request.params.id).catch(request.elsewhere))
      const run_id = await conversation.run(limits)
      if (!wait) return reply.code(202).send({ run_id })
      const outcome = await waitForRun(request, { conversation, run_id, timeout, signal: closeSignal(reply) })
      accessOf(request).requireValid()
      return reply.code(200).send(outcome)
    },
  )

  app.post(
    '/conversations/:id/pause',
    {
      schema: {
        ...describe(
          'pauseConversation',
          'Pause the agent; without `interrupt`, pausing an agent that is not running changes nothing',
          [...CONVERSATION, 'storage_full'],
        ),
        params: ById,
        body: PauseRequest.optional(),
        response: { 200: StatusAnswer },
      },
    },
    async (request) => {
      const conversation = await manager.open(request.params.id)
      return { status: await conversation.pause(request.body ?? PauseRequest.parse({})) }
    },
  )
}

type RunWait = {
  readonly conversation: Pick<Awaited<ReturnType<ConversationManager['open']>>, 'waitForRun'>
  readonly run_id: string
  /** Seconds. */
  readonly timeout: number
  readonly signal: AbortSignal
}

/** An instance that stops leaves the conversation, whose run continues elsewhere: the wait does, too. */
async function waitForRun(
  { elsewhere, remote }: Pick<FastifyRequest, 'elsewhere' | 'remote'>,
  { conversation, run_id, timeout, signal }: RunWait,
): Promise<RunOutcome> {
  const until = performance.now() + timeout * 1000
  const outcome = await conversation.waitForRun(run_id, timeout, signal)
  if (!elsewhere || remote || outcome.status !== 'running') return outcome
  const seconds = (until - performance.now()) / 1000
  if (seconds <= 0 || signal.aborted) return outcome
  const next = await elsewhere(undefined).catch(() => undefined) // nobody can continue it now
  return next ? await next.waitForRun(run_id, seconds, signal) : outcome
}

export const withdrawalRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (app, { manager }) => {
  const describe = describeRoute('messages')

  app.delete(
    '/conversations/:id/messages/:message_id',
    {
      schema: {
        ...describe('withdrawMessage', 'Take a message back that the agent has not read', [
          ...CONVERSATION,
          'message_not_found',
          'already_read',
          'conversation_running',
          'conversation_from_newer_version',
          'storage_full',
        ]),
        params: OneMessage,
        response: { 200: WithdrawnMessage },
      },
    },
    async (request) => {
      const conversation = await manager.open(request.params.id)
      const { message, ...withdrawn } = await conversation.withdrawals.withdraw(request.params.message_id)
      return { ...withdrawn, ...(accessOf(request).allows('read') && { message }) }
    },
  )
}

export const subagentRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (app, { manager }) => {
  const describe = describeRoute('messages')

  app.delete(
    '/conversations/:id/subagents/:agent_id',
    {
      schema: {
        ...describe('stopSubagent', 'Stop a subagent in the background; one that has ended is not changed', [
          ...CONVERSATION,
          'subagent_not_found',
          'storage_full',
        ]),
        params: OneSubagent,
        response: { 200: StoppedSubagent.describe('After its end.') },
      },
    },
    async ({ params }) => (await manager.open(params.id)).stopSubagent(params.agent_id),
  )
}

export const compactionRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (app, { manager }) => {
  const describe = describeRoute('messages')

  app.post(
    '/conversations/:id/compact',
    {
      schema: {
        ...describe(
          'compactConversation',
          'Summarise the earlier part of the conversation for the model; responds when that is done',
          [
            ...CONVERSATION,
            'conversation_running',
            'nothing_to_compact',
            'conversation_from_newer_version',
            'model_failed',
            'storage_full',
          ],
        ),
        params: ById,
        body: CompactRequest.optional(),
        response: { 200: Compacted },
      },
    },
    async (request) => {
      const { compactions } = await manager.open(request.params.id)
      return { condensation: await compactions.compact(request.body ?? {}) }
    },
  )
}
