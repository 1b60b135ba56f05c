/** The request that is equivalent to a frame of a WebSocket. */
import type { CommandFrame } from '../../contract/socket.ts'

/** A request below the path of the conversation. */
export type RemoteRequest = {
  readonly method: string
  readonly path: string
  readonly body?: object
  readonly idempotencyKey?: string | undefined
}

export function requestOf(frame: CommandFrame): RemoteRequest {
  switch (frame.type) {
    case 'message': {
      const { type: _, id: __, idempotency_key: idempotencyKey, ...body } = frame
      return { method: 'POST', path: '/messages', body, idempotencyKey }
    }
    case 'run': {
      const { type: _, id: __, ...body } = frame
      return { method: 'POST', path: '/run', body }
    }
    case 'pause':
      return { method: 'POST', path: '/pause', body: { interrupt: frame.interrupt } }
    case 'task': {
      const { type: _, id: __, idempotency_key: idempotencyKey, ...body } = frame
      return { method: 'POST', path: '/tasks', body, idempotencyKey }
    }
    case 'cancel_task':
      return { method: 'DELETE', path: `/tasks/${frame.task_id}` }
    case 'answer':
      return { method: 'POST', path: `/requests/${frame.request_id}`, body: frame.answer }
  }
}
