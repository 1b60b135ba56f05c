/** The tasks of a conversation. */
import type { BodyOf, QueryFor } from '../operations/operations.ts'
import type { CallOptions } from '../request/api.ts'
import { listOf } from '../request/list.ts'
import { ConversationPart } from './part.ts'

export class TasksClient extends ConversationPart {
  post(body: BodyOf<'postTask'>, options?: CallOptions) {
    return this.api.call('postTask', { params: { id: this.id }, body }, options)
  }

  list(query: QueryFor<'listTasks'> = {}, options?: CallOptions) {
    const params = { id: this.id }
    return listOf((page_id = query.page_id) =>
      this.api.call('listTasks', { params, query: { ...query, page_id } }, options),
    )
  }

  get(task_id: string, options?: CallOptions) {
    return this.api.call('getTask', { params: { id: this.id, task_id } }, options)
  }

  /** Returns the task after it has ended. */
  cancel(task_id: string, options?: CallOptions) {
    return this.api.call('cancelTask', { params: { id: this.id, task_id } }, options)
  }
}
