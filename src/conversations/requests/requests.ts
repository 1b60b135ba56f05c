/**
 * The requests of one conversation to the outside: which wait for a user or a program, and how they are answered. The
 * first answer counts; the same one again changes nothing, even long afterwards.
 */
import type { RequestKind } from '../../contract/requests/request-kinds.ts'
import { REQUEST_KINDS } from '../../contract/requests/request-kinds.ts'
import type { AnswerOf, AnswerRequest, ListOpenRequests, OpenRequest, RequestAccepted } from '../../contract/request.ts'
import { answeredBefore, isOfAnotherKind, requestClosed, requestNotFound } from '../../state/request-problems.ts'
import type { ClientCalls } from './client-calls.ts'
import type { LiveState } from '../live/live-state.ts'
import type { RequestHandler, RequestHandlers } from './request-handler.ts'

type Kinds = RequestHandlers & { readonly client_tool: ClientCalls }

export class Requests {
  readonly #kinds: Kinds
  readonly #state: LiveState

  constructor(kinds: Kinds, state: LiveState) {
    this.#kinds = kinds
    this.#state = state
  }

  /** The oldest first. `client`: see `RequestHandler.open`. */
  list({ kinds, client }: ListOpenRequests = {}): OpenRequest[] {
    return REQUEST_KINDS.filter((kind) => kinds === undefined || kinds.has(kind))
      .flatMap((kind): OpenRequest[] => this.#kinds[kind].open(client))
      .sort(compareRequests)
  }

  /** Throws `request_not_found` for a request that does not wait. */
  get(requestId: string, client?: string): OpenRequest {
    const request = this.#find(requestId, client) ?? this.#find(requestId)
    if (!request) throw requestNotFound()
    return request
  }

  /** Throws the `Problem` of an answer that does not fit what waits. Changes nothing. */
  check(requestId: string, request: AnswerRequest): void {
    if (this.#find(requestId)?.kind === request.kind) checkKind(this.#kinds, request.kind, requestId, request)
  }

  /** `keyName`: the API key of the client. */
  async answer(requestId: string, request: AnswerRequest, keyName?: string): Promise<RequestAccepted> {
    const open = this.#find(requestId)
    if (open && open.kind !== request.kind) throw isOfAnotherKind(open.kind)
    await answerKind(this.#kinds, request.kind, { requestId, given: request, keyName })
    return { status: this.#state.current.status, pending: this.list().length }
  }

  /** Closes the requests whose deadline has passed: those that wait although nothing holds them. */
  async expire(): Promise<void> {
    await this.#kinds.client_tool.expire()
  }

  #find(requestId: string, client?: string): OpenRequest | undefined {
    for (const kind of REQUEST_KINDS) {
      const openRequest = this.#kinds[kind].open(client).find(({ request_id }) => request_id === requestId)
      if (openRequest) return openRequest
    }
    return undefined
  }
}

type Position = Pick<OpenRequest, 'opened_at' | 'request_id'>

export const compareRequests = (a: Position, b: Position): number =>
  compareTexts(a.opened_at, b.opened_at) || compareTexts(a.request_id, b.request_id)

const compareTexts = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)

function checkKind<K extends RequestKind>(
  kinds: { readonly [Each in K]: RequestHandler<Each> },
  name: K,
  requestId: string,
  answer: AnswerOf<K>,
): void {
  const kind: RequestHandler<K> = kinds[name]
  kind.check?.(requestId, kind.redact(answer))
}

async function answerKind<K extends RequestKind>(
  kinds: { readonly [Each in K]: RequestHandler<Each> },
  name: K,
  { requestId, given, keyName }: { requestId: string; given: AnswerOf<K>; keyName: string | undefined },
): Promise<void> {
  const kind: RequestHandler<K> = kinds[name]
  const answer = kind.redact(given)
  if (await kind.answer(requestId, answer, keyName)) return
  switch (await kind.compare(requestId, answer)) {
    case 'same':
      return
    case 'other':
      throw answeredBefore()
    case 'none':
      throw requestClosed()
    case 'unknown':
      throw requestNotFound()
  }
}
