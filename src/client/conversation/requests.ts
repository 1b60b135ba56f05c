/** What a conversation waits for from a user or a program: permissions, questions, client tools, hosts and hooks. */
import { AgentServerError } from '../request/agent-server-error.ts'
import type { EventOf } from '../../contract/events/event.ts'
import type { ToolDecision } from '../../contract/values/permission.ts'
import type { OpenRequestOf } from '../../contract/request.ts'
import type { BodyOf, QueryFor, ReplyOf } from '../operations/operations.ts'
import type { CallOptions } from '../request/api.ts'
import { listOf } from '../request/list.ts'
import { ConversationPart } from './part.ts'

/** A `RequestOpened` event, or an item of the list. */
export type AskedPermission = Pick<
  Extract<EventOf<'RequestOpened'>, { kind: 'permission' }> | OpenRequestOf<'permission'>,
  'request_id' | 'payload'
>

export class RequestsClient extends ConversationPart {
  /** Lists what waits, the oldest first. */
  list(query: QueryFor<'listRequests'> = {}, options?: CallOptions) {
    return listOf(() => this.api.call('listRequests', { params: { id: this.id }, query }, options))
  }

  get(request_id: string, query?: QueryFor<'getRequest'>, options?: CallOptions) {
    return this.api.call('getRequest', { params: { id: this.id, request_id }, query }, options)
  }

  /** The first answer counts; the same one again changes nothing. */
  answer(request_id: string, body: BodyOf<'answerRequest'>, options?: CallOptions) {
    return this.api.call('answerRequest', { params: { id: this.id, request_id }, body }, options)
  }

  /** Allows every call of a permission request that waits. With `remember` also the same calls in the future. */
  allow(permission: AskedPermission, { remember, ...options }: CallOptions & { readonly remember?: boolean } = {}) {
    return this.#decideAll(permission, { behavior: 'allow', remember }, options)
  }

  /** Denies every call of a permission request that waits. The agent reads `message`. */
  deny(permission: AskedPermission, { message, ...options }: CallOptions & { readonly message?: string } = {}) {
    return this.#decideAll(permission, { behavior: 'deny', message }, options)
  }

  /** Others, such as hooks, may have decided some of the calls, also while this sends its answers. */
  async #decideAll(
    permission: AskedPermission,
    decision: Pick<ToolDecision, 'behavior' | 'message' | 'remember'>,
    options: CallOptions,
  ): Promise<ReplyOf<'answerRequest'>> {
    const calls = permission.payload.tool_uses.filter((call) => !('decision' in call && call.decision))
    const decisions = calls.map(({ tool_use_id, input_hash }) => ({ tool_use_id, input_hash, ...decision }))
    try {
      return await this.answer(permission.request_id, { kind: 'permission', decisions }, options)
    } catch (error) {
      const unansweredPermission = isAnswered(error)
        ? await this.#left(permission.request_id, calls, options)
        : undefined
      if (!unansweredPermission) throw error
      return await this.#decideAll(unansweredPermission, decision, options)
    }
  }

  /** The request with those of the calls that still wait; undefined if there are none, or as many as before. */
  async #left(
    request_id: string,
    before: AskedPermission['payload']['tool_uses'],
    options: CallOptions,
  ): Promise<AskedPermission | undefined> {
    const open = await this.get(request_id, {}, options).catch(() => undefined)
    if (open?.kind !== 'permission') return undefined
    const hashes = new Map(before.map(({ tool_use_id, input_hash }) => [tool_use_id, input_hash]))
    const tool_uses = open.payload.tool_uses.filter(
      ({ decision, tool_use_id, input_hash }) => !decision && hashes.get(tool_use_id) === input_hash,
    )
    return tool_uses.length > 0 && tool_uses.length < before.length ? { request_id, payload: { tool_uses } } : undefined
  }
}

const isAnswered = (error: unknown) => error instanceof AgentServerError && error.code === 'already_answered'
