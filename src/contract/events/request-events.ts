/** The events of requests to the outside: what waits for a user or a program, the answer, or the end without one. */
import { z } from 'zod'
import type { OneOf, StoredKind } from '../requests/request-kinds.ts'
import { OfRequest, partOf, REQUESTS, STORED_KINDS } from '../requests/request-kinds.ts'
import { byEnvironment, Envelope, InRun, InSubagent } from './envelope.ts'

const openedOf = <K extends StoredKind>(kind: K) =>
  Envelope.extend({
    ...byEnvironment,
    ...InRun,
    ...InSubagent,
    type: z.literal('RequestOpened'),
    kind: z.literal(kind),
    ...OfRequest,
    payload: partOf(kind, 'opened'),
  }).meta({ id: `${REQUESTS[kind].name}Opened` })

type Opened = { [K in StoredKind]: ReturnType<typeof openedOf<K>> }

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the schema of each kind
const schemasOfOpened = STORED_KINDS.map(openedOf) as OneOf<Opened>
export const RequestOpened = z
  .discriminatedUnion('kind', schemasOfOpened)
  .meta({ id: 'RequestOpened' })
  .describe(
    'The conversation waits for a user or a program: answer with POST requests/{request_id}. It ends with its `RequestAnswered` or its `RequestClosed`. Where the server stopped in between, the results of its calls end it.',
  )

const { request_id, tool_use_ids } = OfRequest

const answeredOf = <K extends StoredKind>(kind: K) =>
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
    answer: partOf(kind, 'answered'),
    answered_by: z
      .enum(['user', 'hook', 'mode', 'policy'])
      .describe(
        '`user`: a client. `hook`: a PermissionRequest hook. `mode`: the permission mode, because no hook answered. `policy`: a change of the network policy.',
      ),
    key_name: z.string().optional().describe('The name of the API key of the client. Absent for the master key.'),
  }).meta({ id: `${REQUESTS[kind].name}Answered` })

type Answered = { [K in StoredKind]: ReturnType<typeof answeredOf<K>> }

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the schema of each kind
const schemasOfAnswered = STORED_KINDS.map(answeredOf) as OneOf<Answered>
export const RequestAnswered = z
  .discriminatedUnion('kind', schemasOfAnswered)
  .meta({ id: 'RequestAnswered' })
  .describe('An answer. A permission request can have several, each about some of its calls.')

const CloseReason = z
  .enum(['message', 'rejected', 'interrupted', 'timeout', 'server_restart', 'forked', 'rewound'])
  .describe(
    '`message`: the user wrote a message instead. `rejected`: the user refused the whole turn. `interrupted`: the run was interrupted, or nothing waits any more. `timeout`: nobody answered in time. `server_restart`: what waited ended with the server. `forked`: it waits in the original conversation only. `rewound`: the conversation was taken back to an event before it.',
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
