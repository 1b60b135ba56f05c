/** Requests to the outside on the wire: what waits for a user or a program, and how it is answered. */
import { z } from 'zod'
import { InSubagent } from './events/envelope.ts'
import type { OneOf, RequestKind } from './requests/request-kinds.ts'
import { OfRequest, partOf, REQUEST_KINDS, RequestKindName, REQUESTS } from './requests/request-kinds.ts'
import { Status } from './events/status.ts'
import { HookClientName } from './hooks/client-hooks.ts'
import { listOf, PageLimit } from './values/page.ts'

const openOf = <K extends RequestKind>(kind: K) =>
  z
    .object({
      kind: z.literal(kind),
      ...OfRequest,
      opened_at: z.iso.datetime(),
      ...InSubagent,
      payload: partOf(kind, 'payload'),
    })
    .meta({ id: `Open${REQUESTS[kind].name}` })

type Open = { [K in RequestKind]: ReturnType<typeof openOf<K>> }

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the schema of each kind
const openSchemas = REQUEST_KINDS.map(openOf) as OneOf<Open>
export const OpenRequest = z.discriminatedUnion('kind', openSchemas).meta({ id: 'OpenRequest' })
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

const answerOf = <K extends RequestKind>(kind: K) =>
  z.strictObject({ kind: z.literal(kind), ...partOf(kind, 'answer') }).meta({ id: `Answer${REQUESTS[kind].name}` })

const examples = REQUEST_KINDS.map((kind) => ({ kind, ...REQUESTS[kind].example }))

type Answering = { [K in RequestKind]: ReturnType<typeof answerOf<K>> }

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the schema of each kind
const answerSchemas = REQUEST_KINDS.map(answerOf) as OneOf<Answering>
/** The answer to a request. `kind` is that of the request: an answer of another kind changes nothing. */
export const AnswerRequest = z.discriminatedUnion('kind', answerSchemas).meta({ id: 'AnswerRequest', examples })
export type AnswerRequest = z.infer<typeof AnswerRequest>
export type AnswerOf<K extends RequestKind> = Extract<AnswerRequest, { kind: K }>

export const RequestAccepted = z
  .object({
    status: Status,
    pending: z.int().nonnegative().describe('Number of requests of the conversation that still wait.'),
  })
  .meta({ id: 'RequestAccepted', examples: [{ status: 'running', pending: 0 }] })
export type RequestAccepted = z.infer<typeof RequestAccepted>
