/** Requests to the outside on the wire: what waits for a user or a program, and how it is answered. */
import { z } from 'zod'
import { PostToolResult } from './client-tools/client-tool.ts'
import { InSubagent } from './events/envelope.ts'
import { Status } from './events/status.ts'
import { HookClientName, PostHookAnswer } from './hooks/client-hooks.ts'
import { HookPoint } from './hooks/hook-point.ts'
import { DecideNetworkRequest } from './values/network.ts'
import { listOf, PageLimit } from './values/page.ts'
import { AskedToolUse, Behavior, DecidePermission } from './values/permission.ts'
import type { RequestKind } from './values/request-kinds.ts'
import { Json, OfRequest, REQUEST_KINDS, RequestKindName, STORED_PAYLOADS } from './values/request-kinds.ts'
import { AnswerQuestion } from './values/question.ts'

/** What each kind shows. */
const PAYLOADS = {
  ...STORED_PAYLOADS,
  permission: z.object({
    tool_uses: z.array(AskedToolUse.extend({ decision: Behavior.optional().describe('Absent while it waits.') })),
  }),
  hook: z.object({
    client: z.string().describe('The client that must answer.'),
    hook_id: z.string(),
    hook_point: HookPoint,
    input: Json.optional().describe(
      'What a command hook reads on its standard input. Only in lists for this client: with `client`.',
    ),
  }),
} satisfies Record<RequestKind, z.ZodType>

const openOf = <K extends RequestKind>(kind: K) =>
  z.object({
    kind: z.literal(kind),
    ...OfRequest,
    opened_at: z.iso.datetime(),
    ...InSubagent,
    payload: PAYLOADS[kind],
  })

const Open = {
  permission: openOf('permission').meta({ id: 'OpenPermission' }),
  question: openOf('question').meta({ id: 'OpenQuestion' }),
  elicitation: openOf('elicitation').meta({ id: 'OpenElicitation' }),
  client_tool: openOf('client_tool').meta({ id: 'OpenClientTool' }),
  network: openOf('network').meta({ id: 'OpenNetworkRequest' }),
  hook: openOf('hook').meta({ id: 'OpenHook' }),
}

export const OpenRequest = z
  .discriminatedUnion('kind', [
    Open.permission,
    Open.question,
    Open.elicitation,
    Open.client_tool,
    Open.network,
    Open.hook,
  ])
  .meta({ id: 'OpenRequest' })
export type OpenRequest = z.infer<typeof OpenRequest>
export type OpenRequestOf<K extends RequestKind> = Extract<OpenRequest, { kind: K }>

const requestKinds = listOf(RequestKindName, REQUEST_KINDS.length)

export const ShowRequest = z.strictObject({
  client: HookClientName.optional().describe('Your name as a client of hooks: hooks that you answer have their input.'),
})

export const ListOpenRequests = z.strictObject({
  kinds: requestKinds.optional().describe('Only requests of these kinds.'),
  client: HookClientName.optional().describe(
    'Your name as a client of hooks: of hooks only those that you answer are listed, with their input.',
  ),
})
export type ListOpenRequests = z.infer<typeof ListOpenRequests>

export const OpenRequests = z.object({ items: z.array(OpenRequest) }).meta({ id: 'OpenRequests' })
export type OpenRequests = z.infer<typeof OpenRequests>

export const ListAllRequests = z.strictObject({
  kinds: requestKinds.optional().describe('Only requests of these kinds.'),
  limit: PageLimit,
  page_id: z.string().optional().describe('`next_page_id` of the page before.'),
})
export type ListAllRequests = z.infer<typeof ListAllRequests>

/** A request in the list of all conversations. */
export const WaitingRequest = z
  .object({
    conversation_id: z.uuid(),
    title: z.string().optional().describe('Of the conversation.'),
    user_id: z.string().optional().describe('Of the conversation.'),
    request: OpenRequest,
  })
  .meta({ id: 'WaitingRequest' })
export type WaitingRequest = z.infer<typeof WaitingRequest>

export const WaitingRequests = z
  .object({ items: z.array(WaitingRequest), next_page_id: z.string().nullable() })
  .meta({ id: 'WaitingRequests' })
export type WaitingRequests = z.infer<typeof WaitingRequests>

const answerOf = <K extends RequestKind, Shape extends z.ZodRawShape>(kind: K, shape: Shape) =>
  z.strictObject({ kind: z.literal(kind), ...shape })

/** The answer to a request. `kind` is that of the request: an answer of another kind changes nothing. */
export const AnswerRequest = z
  .discriminatedUnion('kind', [
    answerOf('permission', DecidePermission.shape).meta({ id: 'AnswerPermission' }),
    answerOf('question', AnswerQuestion.shape).meta({ id: 'AnswerQuestion' }),
    answerOf('elicitation', AnswerQuestion.shape).meta({ id: 'AnswerElicitation' }),
    answerOf('client_tool', PostToolResult.shape).meta({ id: 'AnswerClientTool' }),
    answerOf('network', DecideNetworkRequest.shape).meta({ id: 'AnswerNetworkRequest' }),
    answerOf('hook', PostHookAnswer.shape).meta({ id: 'AnswerHook' }),
  ])
  .meta({
    id: 'AnswerRequest',
    examples: [
      {
        kind: 'permission',
        decisions: [
          {
            tool_use_id: 'call_1',
            input_hash: '9f2c7e0d4b6a8150c3d2e1f0a9b8c7d6e5f4a3b2c1d0e9f8a7b6c5d4e3f2a1b0',
            behavior: 'deny',
            message: 'Not in production.',
          },
        ],
      },
      { kind: 'question', answers: { 'Which database should it use?': 'PostgreSQL', '1': ['Tests', 'Documentation'] } },
      { kind: 'client_tool', output: { number: '17', status: 'shipped' } },
      { kind: 'network', behavior: 'allow', remember: true },
      {
        kind: 'hook',
        output: { hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'deny' } },
      },
    ],
  })
export type AnswerRequest = z.infer<typeof AnswerRequest>
export type AnswerOf<K extends RequestKind> = Extract<AnswerRequest, { kind: K }>

export const RequestAccepted = z
  .object({
    status: Status,
    pending: z.int().nonnegative().describe('Number of requests of the conversation that still wait.'),
  })
  .meta({ id: 'RequestAccepted', examples: [{ status: 'running', pending: 0 }] })
export type RequestAccepted = z.infer<typeof RequestAccepted>
