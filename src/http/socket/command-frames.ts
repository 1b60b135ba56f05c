/**
 * Executes the command frames of a conversation's WebSocket: parses them, runs them one after the other, answers each.
 */
import type { z } from 'zod'
import type { Access } from '../../access/access.ts'
import { REQUESTS } from '../../contract/requests/request-kinds.ts'
import { describeIssue, Problem } from '../../contract/problem.ts'
import type { AckFrame, ProblemFrame } from '../../contract/socket.ts'
import { CommandFrame } from '../../contract/socket.ts'
import { mayPostTask, mayRun } from '../guards/limited-requests.ts'
import { limitAs } from '../guards/profile-limits.ts'
import type { RouteName } from '../guards/route-scopes.ts'
import { scopesOfRoute } from '../guards/route-scopes.ts'
import { ComplexJson, parseUntrustedJson } from '../../lib/json/untrusted-json.ts'
import type { PostMessage } from '../../contract/run.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import { requestOf } from '../request/frame-request.ts'
import type { messageMarksOf } from '../request/idempotency-key.ts'
import type { RemoteConversation } from '../remote/remote-conversation.ts'
import type { Idempotency } from '../../state/idempotency.ts'

/** More issues would not help to correct the frame. */
const MAX_ISSUES = 20

export type CommandDeps = {
  /** The permissions of its key. */
  readonly access: Access
  /** Opens the conversation on demand: a WebSocket may outlive a log that failed. */
  readonly open: () => Promise<Conversation>
  /** Set if another instance owned the conversation when the WebSocket was opened. */
  readonly remote: RemoteConversation | undefined
  /** Returns the idempotency data of a frame that is equivalent to another route. */
  readonly keyed: (key: string | undefined, route: string, body: unknown) => Idempotency | undefined
  readonly marksOf: (message: PostMessage, key: string | undefined) => ReturnType<typeof messageMarksOf>
  /** Converts a thrown error. */
  readonly toProblem: (error: unknown) => Problem
}

/** The route of each frame, whose scope and limits it has. */
const FRAME_ROUTES = {
  message: 'POST /conversations/:id/messages',
  run: 'POST /conversations/:id/run',
  pause: 'POST /conversations/:id/pause',
  task: 'POST /conversations/:id/tasks',
  cancel_task: 'DELETE /conversations/:id/tasks/:task_id',
  answer: 'POST /conversations/:id/requests/:request_id',
} as const satisfies Readonly<Record<CommandFrame['type'], RouteName>>

/** The same as for a request of the equivalent route. Throws `forbidden`. */
function authorizeFrame(access: Access, frame: CommandFrame): void {
  const route = FRAME_ROUTES[frame.type]
  access.require(...(frame.type === 'answer' ? [REQUESTS[frame.answer.kind].scope] : scopesOfRoute(route)))
  limitAs(access, route, requestOf(frame).body)
  if (frame.type === 'task') mayPostTask(access, frame)
  if (frame.type === 'run') mayRun(access, frame)
  if (frame.type === 'message' && frame.run_options) mayRun(access, frame.run_options)
}

/** Never throws. */
export async function answerCommand(text: string, deps: CommandDeps): Promise<AckFrame | ProblemFrame> {
  let id: string | undefined
  try {
    const json = parseJson(text)
    id = idOf(json)
    const frame = parseFrame(CommandFrame, json)
    authorizeFrame(deps.access, frame)
    const result = (await deps.remote?.execute(frame)) ?? (await execute(frame, await deps.open(), deps))
    return { type: 'ack', ...withId(id), of: frame.type, result }
  } catch (error) {
    return { type: 'problem', ...withId(id), ...deps.toProblem(error).toBody() }
  }
}

async function execute(
  frame: CommandFrame,
  conversation: Conversation,
  { keyed, marksOf, access }: Pick<CommandDeps, 'keyed' | 'marksOf' | 'access'>,
): Promise<AckFrame['result']> {
  switch (frame.type) {
    case 'message': {
      const { type: _, id: __, idempotency_key: key, ...message } = frame
      const { idempotency, clientMessage } = marksOf(message, key)
      const { isKnown: ___, ...answer } = await conversation.post(message, idempotency, { clientMessage })
      return answer
    }
    case 'run': {
      const { type: _, id: __, ...options } = frame
      return { run_id: await conversation.run(options) }
    }
    case 'pause':
      return { status: await conversation.pause({ interrupt: frame.interrupt }) }
    case 'task': {
      const { type: _, id: __, idempotency_key: key, ...task } = frame
      return await conversation.tasks.post(task, keyed(key, 'POST /conversations/:id/tasks', task))
    }
    case 'cancel_task':
      return await conversation.tasks.cancel(frame.task_id)
    case 'answer':
      return await conversation.requests.answer(frame.request_id, frame.answer, access.key?.name)
  }
}

export function parseJson(text: string): unknown {
  try {
    return parseUntrustedJson(text)
  } catch (cause) {
    if (cause instanceof ComplexJson) throw new Problem('invalid_request', `The frame ${cause.message}.`, { cause })
    throw new Problem(
      'invalid_request',
      'The frame is not a JSON object sent as text. Send one JSON object per frame.',
      { cause },
    )
  }
}

/** Throws a `Problem` that names the invalid path and quotes nothing of the frame. */
export function parseFrame<T>(schema: z.ZodType<T>, json: unknown): T {
  const parseResult = schema.safeParse(json)
  if (parseResult.success) return parseResult.data
  const issues = parseResult.error.issues.slice(0, MAX_ISSUES).map((issue) => describeIssue(issue, ['frame']))
  throw new Problem('invalid_request', issues.map(({ path, message }) => `${path}: ${message}`).join('; '), {
    details: { issues },
  })
}

/** Reads also the id of a frame that is otherwise invalid: its sender waits for the answer. */
function idOf(json: unknown): string | undefined {
  const id = typeof json === 'object' && json !== null && 'id' in json ? json.id : undefined
  return typeof id === 'string' && id.length > 0 && id.length <= 200 ? id : undefined
}

const withId = (id: string | undefined) => (id === undefined ? {} : { id })
