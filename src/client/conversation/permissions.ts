/** The tool calls of a conversation that wait for a decision. */
import type { EventOf } from '../../contract/events/event.ts'
import type { ToolDecision } from '../../contract/permission.ts'
import type { BodyOf, ReplyOf } from '../operations/operations.ts'
import type { Api, CallOptions } from '../request/api.ts'
import { listOf } from '../request/list.ts'

/** A `PermissionRequest` event, or an item of the list. */
export type Asked = Pick<EventOf<'PermissionRequest'>, 'request_id' | 'tool_uses'>

export class PermissionsClient {
  readonly #api: Api
  readonly #id: string

  constructor(api: Api, id: string) {
    this.#api = api
    this.#id = id
  }

  list(options?: CallOptions) {
    return listOf(() => this.#api.call('listPermissions', { params: { id: this.#id } }, options))
  }

  /** Decides about single calls of a request. */
  decide(request_id: string, body: BodyOf<'decidePermission'>, options?: CallOptions) {
    return this.#api.call('decidePermission', { params: { id: this.#id, request_id }, body }, options)
  }

  /** Allows every call of the request. With `remember` also the same calls in the future. */
  allow(asked: Asked, { remember, ...options }: CallOptions & { readonly remember?: boolean } = {}) {
    return this.#decideAll(asked, { behavior: 'allow', remember }, options)
  }

  /** Denies every call of the request. The agent reads `message`. */
  deny(asked: Asked, { message, ...options }: CallOptions & { readonly message?: string } = {}) {
    return this.#decideAll(asked, { behavior: 'deny', message }, options)
  }

  /** Allows every call of the request that still waits, by its id. */
  approve(body: BodyOf<'approve'>, options?: CallOptions) {
    return this.#api.call('approve', { params: { id: this.#id }, body }, options)
  }

  /** Denies every call that waits. */
  reject(body?: BodyOf<'reject'>, options?: CallOptions) {
    return this.#api.call('reject', { params: { id: this.#id }, body }, options)
  }

  #decideAll(
    { request_id, tool_uses }: Asked,
    decision: Pick<ToolDecision, 'behavior' | 'message' | 'remember'>,
    options: CallOptions,
  ): Promise<ReplyOf<'decidePermission'>> {
    const decisions = tool_uses.map(({ tool_use_id, input_hash }) => ({ tool_use_id, input_hash, ...decision }))
    return this.decide(request_id, { decisions }, options)
  }
}
