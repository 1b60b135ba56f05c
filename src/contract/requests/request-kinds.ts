/**
 * The kinds of requests to the outside. A new kind is a file of this folder and a line of this table: events, lists, answers,
 * scopes, what clients show, and the line that terminals print follow from the file. A kind that no call holds also needs a
 * `RequestHandler`, because what its answer does is inside of a conversation, above this folder.
 */
import { z } from 'zod'
import { clientToolKind } from './client-tool.ts'
import { elicitationKind } from './elicitation.ts'
import { hookKind } from './hook.ts'
import type { KindOfRequest } from './kind.ts'
import { networkKind } from './network.ts'
import { permissionKind } from './permission.ts'
import { questionKind } from './question.ts'

/** Lists show the kinds in this order. */
export const REQUESTS = {
  permission: permissionKind,
  question: questionKind,
  elicitation: elicitationKind,
  client_tool: clientToolKind,
  network: networkKind,
  hook: hookKind,
} as const satisfies Record<string, KindOfRequest>

export type RequestKind = keyof typeof REQUESTS

/** The kinds that the log has. */
export type StoredKind = {
  [K in RequestKind]: (typeof REQUESTS)[K] extends { opened: object } ? K : never
}[RequestKind]

/** The kinds that a running call holds. */
export type HeldKind = { [K in RequestKind]: (typeof REQUESTS)[K]['waits'] extends 'call' ? K : never }[RequestKind]

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of the table
export const REQUEST_KINDS = Object.keys(REQUESTS) as [RequestKind, ...RequestKind[]]

/** A client can meet kinds of a newer server, which are not in it. */
const KNOWN_KINDS: ReadonlyMap<string, KindOfRequest> = new Map(Object.entries(REQUESTS))

export const isHeld = (kind: RequestKind): kind is HeldKind => KNOWN_KINDS.get(kind)?.waits === 'call'

/** True, too, for a kind that is not known. */
export const isStored = (kind: RequestKind): kind is StoredKind =>
  !KNOWN_KINDS.has(kind) || KNOWN_KINDS.get(kind)?.opened !== undefined

type Rest = Extract<KindOfRequest['waits'], `waiting_${string}`>

const isRest = (waits: KindOfRequest['waits'] | undefined): waits is Rest => waits?.startsWith('waiting_') === true

/** The status of a run that rests until the request is answered; undefined if none does. */
export function restOf(kind: RequestKind): Rest | undefined {
  const waits = KNOWN_KINDS.get(kind)?.waits
  return isRest(waits) ? waits : undefined
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- there are some
export const STORED_KINDS = REQUEST_KINDS.filter(isStored) as [StoredKind, ...StoredKind[]]

export const RequestKindName = z
  .enum(REQUEST_KINDS)
  .meta({ id: 'RequestKind' })
  .describe(REQUEST_KINDS.map((kind) => `\`${kind}\`: ${REQUESTS[kind].about}.`).join(' '))

type Requests = typeof REQUESTS

/** A part of an entry, with the type that it has for this kind. */
export const partOf = <K extends RequestKind, P extends keyof Requests[K]>(kind: K, part: P): Requests[K][P] =>
  REQUESTS[kind][part]

/** Fields of every request, in events and in lists. */
export const OfRequest = {
  request_id: z.uuid(),
  deadline: z.iso.datetime().optional().describe('When it is closed without an answer. Absent: never.'),
  tool_use_ids: z.array(z.string()).describe('The tool calls that wait for it. The results of all of them end it too.'),
}

/** The schemas of all kinds, as the options of a union. */
export type OneOf<Schemas> = [Schemas[keyof Schemas], ...Schemas[keyof Schemas][]]

type Line = (value: unknown) => string

/** One line about an open request, without its subject. */
export const lineOfRequest = ({ kind, payload }: { readonly kind: RequestKind; readonly payload: unknown }): string =>
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kind and payload belong together
  (REQUESTS[kind].asks as Line)(payload)

/** One line about an answer. */
export const lineOfAnswer = ({ kind, answer }: { readonly kind: StoredKind; readonly answer: unknown }): string =>
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kind and answer belong together
  (REQUESTS[kind].says as Line)(answer)
