/** The operations of A2A on tasks. Every answer is rebuilt from the log: nothing is kept between two calls. */
import { z } from 'zod'
import { followTurn } from '../items/follow-turn.ts'
import type { TurnStep } from '../items/follow-turn.ts'
import { enterStream } from '../shared/enter-stream.ts'
import { parseField } from '../shared/fields.ts'
import type { StreamEvent, A2aTask } from './a2a-objects.ts'
import { A2aError } from './a2a-error.ts'
import { beginTask } from './begin-task.ts'
import type { A2aCall } from './call.ts'
import { HistoryLength, SendParams } from './message-request.ts'
import type { TaskProjection } from './task-projection.ts'
import { findTask, isNewest, projectionOf, readTask } from './tasks.ts'
import type { FoundTask } from './tasks.ts'

const TaskName = z.looseObject({ id: z.string().max(200) })
const GetTask = TaskName.extend({ historyLength: HistoryLength })

/** Waits until the task ends or needs input, unless the client wants an answer at once. */
export async function sendMessage(call: A2aCall): Promise<{ readonly task: A2aTask }> {
  const params = parseField(SendParams, call.params)
  const { historyLength, returnImmediately } = params.configuration ?? {}
  const task = await beginTask(call, params)
  const release = call.deps.manager.hold(task.conversation.id)
  try {
    const projection = returnImmediately ? (await readTask(task)).projection : await untilAtRest(task, call.signal)
    call.access.requireValid()
    return { task: projection.task({ historyLength }) }
  } finally {
    release()
  }
}

async function untilAtRest(task: FoundTask, signal: AbortSignal): Promise<TaskProjection> {
  const { projection, head } = await readTask(task)
  if (projection.isAtRest) return projection
  const following = projectionOf(task)
  for await (const step of followTurn(task.conversation.log, task.start, signal, 'all')) {
    following.add(step)
    if (isAfter(head, step) && following.isAtRest) break
  }
  return following
}

/** Pieces of text are of now. */
const isAfter = (head: number, { seq = Infinity }: TurnStep): boolean => seq > head

export async function getTask(call: A2aCall): Promise<A2aTask> {
  const { id, historyLength } = parseField(GetTask, call.params)
  const task = await find(call, id)
  const { projection } = await readTask(task)
  return projection.task({ historyLength })
}

/** Interrupts the agent, also while it waits. */
export async function cancelTask(call: A2aCall): Promise<A2aTask> {
  const task = await find(call, parseField(TaskName, call.params).id)
  const { state, requests } = task.conversation
  const isOver = (await readTask(task)).projection.isOver
  const isBusy = state.status === 'running' || requests.list().length > 0
  if (isOver && !(isBusy && (await isNewest(task)))) throw new A2aError('TASK_NOT_CANCELABLE', 'The task has ended.')
  await task.conversation.pause({ interrupt: true })
  return (await readTask(task)).projection.task()
}

async function find({ deps, access, request }: A2aCall, id: string): Promise<FoundTask> {
  const task = await findTask(deps, access, id)
  request.conversationId = task.conversation.id
  return task
}

/** Yields lists of events; an empty one if nothing has happened for a while. */
export type EventLists = AsyncGenerator<readonly StreamEvent[], void, void>

/** Ends when the task ends or needs input. */
export async function* streamMessage(call: A2aCall): EventLists {
  const params = parseField(SendParams, call.params)
  const task = await beginTask(call, params)
  const length = params.configuration?.historyLength
  yield* eventsOf(call, task, { historyLength: length, isOver: ({ isAtRest }) => isAtRest })
}

/** Ends when the task ends: somebody else may send the input that it needs. */
export async function* subscribe(call: A2aCall): EventLists {
  const task = await find(call, parseField(TaskName, call.params).id)
  if ((await readTask(task)).projection.isOver)
    throw new A2aError('UNSUPPORTED_OPERATION', 'The task has ended. GetTask returns it.')
  yield* eventsOf(call, task, { isOver: ({ isOver }) => isOver })
}

type EventsOptions = {
  /** Returns true where the stream ends. */
  readonly isOver: (projection: TaskProjection) => boolean
  readonly historyLength?: number | undefined
}

/** The task as it is now, and then what changes. */
async function* eventsOf(
  { deps, signal }: A2aCall,
  task: FoundTask,
  { isOver, historyLength }: EventsOptions,
): EventLists {
  const { conversation, start } = task
  const release = deps.manager.hold(conversation.id)
  let leave: (() => void) | undefined
  try {
    leave = enterStream(deps, conversation.id)
    const { projection: first, head } = await readTask(task)
    yield [{ task: first.task({ historyLength }) }]
    if (isOver(first)) return
    const projection = projectionOf(task)
    for await (const step of followTurn(conversation.log, start, signal, 'all')) {
      const events = projection.add(step)
      if (!isAfter(head, step)) continue
      if (events.length > 0 || (!step.change && !step.event)) yield events
      if (isOver(projection)) return
    }
  } finally {
    leave?.()
    release()
  }
}
