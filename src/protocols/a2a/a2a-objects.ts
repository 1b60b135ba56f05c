/** The objects of A2A 1.0, as they are sent: the JSON form of its protocol buffers. */

export type A2aPart = {
  readonly text?: string
  readonly data?: unknown
  readonly raw?: string
  readonly mediaType?: string
}

export type A2aMessage = {
  readonly messageId: string
  readonly contextId: string
  readonly taskId: string
  readonly role: 'ROLE_USER' | 'ROLE_AGENT'
  readonly parts: readonly A2aPart[]
}

export const TASK_STATES = [
  'TASK_STATE_SUBMITTED',
  'TASK_STATE_WORKING',
  'TASK_STATE_INPUT_REQUIRED',
  'TASK_STATE_COMPLETED',
  'TASK_STATE_FAILED',
  'TASK_STATE_CANCELED',
] as const

export type TaskState = (typeof TASK_STATES)[number]

export type A2aStatus = {
  readonly state: TaskState
  readonly timestamp: string
  readonly message?: A2aMessage
}

export type Artifact = { readonly artifactId: string; readonly name: string; readonly parts: readonly A2aPart[] }

export type A2aTask = {
  readonly id: string
  readonly contextId: string
  readonly status: A2aStatus
  readonly artifacts?: readonly Artifact[]
  readonly history?: readonly A2aMessage[]
  readonly metadata: Readonly<Record<string, unknown>>
}

type OfTask = { readonly taskId: string; readonly contextId: string }

/** One event of a stream. */
export type StreamEvent =
  | { readonly task: A2aTask }
  | { readonly statusUpdate: OfTask & { readonly status: A2aStatus } }
  | {
      readonly artifactUpdate: OfTask & {
        readonly artifact: Artifact
        readonly append?: boolean
        readonly lastChunk?: boolean
      }
    }
