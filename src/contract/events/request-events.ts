/** The events of requests to the outside: what waits for a user or a program, the answer, or the end without one. */
import { z } from 'zod'
import { Decision, Hash } from '../values/permission.ts'
import type { StoredKind } from '../values/request-kinds.ts'
import { OfRequest, STORED_KINDS, STORED_PAYLOADS } from '../values/request-kinds.ts'
import { Answers } from '../values/question.ts'
import { byEnvironment, Envelope, InRun, InSubagent } from './envelope.ts'

const openedOf = <K extends StoredKind>(kind: K) =>
  Envelope.extend({
    ...byEnvironment,
    ...InRun,
    ...InSubagent,
    type: z.literal('RequestOpened'),
    kind: z.literal(kind),
    ...OfRequest,
    payload: STORED_PAYLOADS[kind],
  })

export const RequestOpened = z
  .discriminatedUnion('kind', [
    openedOf('permission').meta({ id: 'PermissionOpened' }),
    openedOf('question').meta({ id: 'QuestionOpened' }),
    openedOf('elicitation').meta({ id: 'ElicitationOpened' }),
    openedOf('client_tool').meta({ id: 'ClientToolOpened' }),
    openedOf('network').meta({ id: 'NetworkOpened' }),
  ])
  .meta({ id: 'RequestOpened' })
  .describe(
    'The conversation waits for a user or a program: answer with POST requests/{request_id}. It ends with its `RequestAnswered` or its `RequestClosed`. Where the server stopped in between, the results of its calls end it.',
  )

const { request_id, tool_use_ids } = OfRequest

const answeredOf = <K extends StoredKind, A extends z.ZodType>(kind: K, answer: A) =>
  Envelope.extend({
    source: z.enum(['user', 'environment']),
    ...InRun,
    ...InSubagent,
    type: z.literal('RequestAnswered'),
    kind: z.literal(kind),
    request_id,
    tool_use_ids: tool_use_ids.describe(
      'The tool calls that the answer is about. Empty if an earlier version wrote it.',
    ),
    answer,
    answered_by: z
      .enum(['user', 'hook', 'mode', 'policy'])
      .describe(
        '`user`: a client. `hook`: a PermissionRequest hook. `mode`: the permission mode, because no hook answered. `policy`: a change of the network policy.',
      ),
    key_name: z.string().optional().describe('The name of the API key of the client. Absent for the master key.'),
  })

export const RequestAnswered = z
  .discriminatedUnion('kind', [
    answeredOf(
      'permission',
      z.object({
        decisions: z.array(z.object({ tool_use_id: z.string(), input_hash: Hash, ...Decision.shape })),
      }),
    ).meta({ id: 'PermissionAnswered' }),
    answeredOf('question', z.object({ answers: Answers })).meta({ id: 'QuestionAnswered' }),
    answeredOf('elicitation', z.object({ answers: Answers })).meta({ id: 'ElicitationAnswered' }),
    answeredOf(
      'client_tool',
      z.object({ output: z.unknown().describe('As the client sent it, without secrets.'), is_error: z.boolean() }),
    ).meta({ id: 'ClientToolAnswered' }),
    answeredOf('network', z.object({ behavior: z.enum(['allow', 'deny']) })).meta({ id: 'NetworkAnswered' }),
  ])
  .meta({ id: 'RequestAnswered' })
  .describe('An answer. A permission request can have several, each about some of its calls.')

const CloseReason = z
  .enum(['message', 'rejected', 'interrupted', 'timeout', 'server_restart', 'forked', 'rewound'])
  .describe(
    '`message`: the user wrote a message instead. `rejected`: the user refused the whole turn. `interrupted`: the run was interrupted. `timeout`: nobody answered in time. `server_restart`: what waited ended with the server. `forked`: it waits in the original conversation only. `rewound`: the conversation was taken back to an event before it.',
  )
export type CloseReason = z.infer<typeof CloseReason>

export const RequestClosed = Envelope.extend({
  ...byEnvironment,
  ...InRun,
  ...InSubagent,
  type: z.literal('RequestClosed'),
  kind: z.enum(STORED_KINDS),
  request_id,
  tool_use_ids,
  reason: CloseReason,
  message: z.string().optional().describe('What the agent reads about it.'),
})
  .meta({ id: 'RequestClosed' })
  .describe('The request ended without an answer. Calls that were not decided count as denied.')
