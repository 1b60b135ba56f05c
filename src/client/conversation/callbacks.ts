/** The callbacks (webhooks) of a conversation, and what was delivered to them. */
import type { BodyOf, QueryFor } from '../operations/operations.ts'
import type { CallOptions } from '../request/api.ts'
import { listOf } from '../request/list.ts'
import { ConversationPart } from './part.ts'

export class CallbacksClient extends ConversationPart {
  /** Returns the callback with its signing secret, which is returned only once. */
  create(body: BodyOf<'createCallback'>, options?: CallOptions) {
    return this.api.call('createCallback', { params: { id: this.id }, body }, options)
  }

  list(options?: CallOptions) {
    return listOf(() => this.api.call('listCallbacks', { params: { id: this.id } }, options))
  }

  get(callback_id: string, options?: CallOptions) {
    return this.api.call('getCallback', { params: { id: this.id, callback_id } }, options)
  }

  update(callback_id: string, body: BodyOf<'updateCallback'>, options?: CallOptions) {
    return this.api.call('updateCallback', { params: { id: this.id, callback_id }, body }, options)
  }

  delete(callback_id: string, options?: CallOptions) {
    return this.api.call('deleteCallback', { params: { id: this.id, callback_id } }, options)
  }

  rotateSecret(callback_id: string, body?: BodyOf<'rotateCallbackSecret'>, options?: CallOptions) {
    return this.api.call('rotateCallbackSecret', { params: { id: this.id, callback_id }, body }, options)
  }

  deliveries(callback_id: string, query: QueryFor<'listDeliveries'> = {}, options?: CallOptions) {
    const params = { id: this.id, callback_id }
    return listOf((page_id = query.page_id) =>
      this.api.call('listDeliveries', { params, query: { ...query, page_id } }, options),
    )
  }

  /** Sends a test delivery and returns its outcome. */
  test(callback_id: string, options?: CallOptions) {
    return this.api.call('testCallback', { params: { id: this.id, callback_id } }, options)
  }

  /** Delivers the events from `from_seq` on again. */
  redeliver(callback_id: string, body: BodyOf<'redeliver'>, options?: CallOptions) {
    return this.api.call('redeliver', { params: { id: this.id, callback_id }, body }, options)
  }
}
