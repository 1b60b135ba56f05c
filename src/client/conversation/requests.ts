/** What a conversation waits for from a user or a program: permissions, questions, client tools, hosts and hooks. */
import type { EventOf } from '../../contract/events/event.ts'
import type { ToolDecision } from '../../contract/permission.ts'
import type { OpenRequestOf } from '../../contract/request.ts'
import type { BodyOf, QueryFor, ReplyOf } from '../operations/operations.ts'
import type { Api, CallOptions } from '../request/api.ts'
import { listOf } from '../request/list.ts'

/** A `RequestOpened` event, or an item of the list. */
export type AskedPermission = Pick<
  Extract<EventOf<'RequestOpened'>, { kind: 'permission' }> | OpenRequestOf<'permission'>,
  'request_id' | 'payload'
>

export class RequestsClient {
  readonly #api: Api
  readonly #id: string

  constructor(api: Api, id: string) {
    this.#api = api
    this.#id = id
  }

  /** Lists what waits, the oldest first. */
  list(query: QueryFor<'listRequests'> = {}, options?: CallOptions) {
    return listOf(() => this.#api.call('listRequests', { params: { id: this.#id }, query }, options))
  }

  get(request_id: string, query?: QueryFor<'getRequest'>, options?: CallOptions) {
    return this.#api.call('getRequest', { params: { id: this.#id, request_id }, query }, options)
  }

  /** The first answer counts; the same one again changes nothing. */
  answer(request_id: string, body: BodyOf<'answerRequest'>, options?: CallOptions) {
    return this.#api.call('answerRequest', { params: { id: this.#id, request_id }, body }, options)
  }

  /** Allows every call of a permission request. With `remember` also the same calls in the future. */
  allow(asked: AskedPermission, { remember, ...options }: CallOptions & { readonly remember?: boolean } = {}) {
    return this.#decideAll(asked, { behavior: 'allow', remember }, options)
  }

  /** Denies every call of a permission request. The agent reads `message`. */
  deny(asked: AskedPermission, { message, ...options }: CallOptions & { readonly message?: string } = {}) {
    return this.#decideAll(asked, { behavior: 'deny', message }, options)
  }

  #decideAll(
    { request_id, payload }: AskedPermission,
    decision: Pick<ToolDecision, 'behavior' | 'message' | 'remember'>,
    options: CallOptions,
  ): Promise<ReplyOf<'answerRequest'>> {
    const decisions = payload.tool_uses.map(({ tool_use_id, input_hash }) => ({ tool_use_id, input_hash, ...decision }))
    return this.answer(request_id, { kind: 'permission', decisions }, options)
  }
}
