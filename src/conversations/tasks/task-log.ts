/** Reads tasks from the log: one by its id, or page by page. A task is its first update merged with its latest. */
import type { EventOf } from '../../contract/events/event.ts'
import { Problem } from '../../contract/problem.ts'
import type { Runnable, Task, ListTasks } from '../../contract/values/task.ts'
import type { EventLog } from '../../events/event-log.ts'
import { readPages } from '../../events/read-pages.ts'
import { decodePageId, encodePageId } from '../../lib/page-id.ts'
import { uuid7Time } from '../../lib/uuid7.ts'
import type { OpenTask } from '../../state/task-state.ts'
import { isOpen } from '../../state/task-state.ts'

type TaskUpdate = EventOf<'TaskUpdate'>
/** The update that posted a task. */
type PostedTask = TaskUpdate & { readonly runnable: Runnable }
type Log = Pick<EventLog, 'read' | 'head'>
type OpenTasks = readonly OpenTask[]

const TYPES = new Set(['TaskUpdate'])
/** Events read at a time. */
const PAGE = 1000
/** Maximum time between the creation of a task's id and its event in the log, in milliseconds. The clock may be set back in between. */
const POSTED_WITHIN_MS = 60_000
/** Maximum reads of the log per list request: its page is short then, and has a next one. */
const MAX_LIST_READS = 16

export function postedView({ task_id, title, runnable, timestamp }: PostedTask): Task {
  return { id: task_id, title, status: 'pending', runnable, created_at: timestamp, updated_at: timestamp }
}

/** Throws a `Problem` if there is no such task. */
export async function findTask(log: Log, open: OpenTasks, taskId: string): Promise<Task> {
  const knownTask = open.find(({ id }) => id === taskId)
  const postedTask = knownTask ? await postedAt(log, knownTask.seq) : await findPosted(log, taskId)
  if (!postedTask)
    throw new Problem('task_not_found', 'There is no task with this id; GET tasks lists the existing ones.')
  return taskView(postedTask, open, await lastUpdates(log, [postedTask], open))
}

/** Returns the update that posted a task, by its seq. */
export async function postedAt(log: Log, seq: number): Promise<PostedTask> {
  const { events } = await log.read({ afterSeq: seq - 1, beforeSeq: seq + 1, limit: 1 })
  // oxlint-disable-next-line typescript/no-non-null-assertion, typescript/no-unsafe-type-assertion -- as the fold noted it
  return events[0]!.event as PostedTask
}

/** A task's id contains its time of posting: search the log only there. */
async function findPosted(log: Log, taskId: string): Promise<PostedTask | undefined> {
  const time = uuid7Time(taskId)
  if (time === undefined) return undefined
  const [since = '', until = ''] = [-1, 1].map((sign) => new Date(time + sign * POSTED_WITHIN_MS).toISOString())
  for await (const event of updates(log, { since, until }))
    if (isPosted(event) && event.task_id === taskId) return event
  return undefined
}

/** Throws a `Problem` for an invalid `page_id`. */
export async function listTasks(
  log: Log,
  open: OpenTasks,
  { status, order, limit, page_id }: ListTasks,
): Promise<{ items: Task[]; next_page_id: string | null }> {
  const items: Task[] = []
  let reads = 0
  for await (const page of readPages(log, { types: TYPES, order, limit: PAGE, ...rangeOf(page_id, order) })) {
    const postedTasks = page.events.map(({ event }) => event).filter(isPosted)
    const last = await lastUpdates(log, postedTasks, open)
    for (const each of postedTasks) {
      const task = taskView(each, open, last)
      if (status !== undefined && task.status !== status) continue
      items.push(task)
      if (items.length === limit) return { items, next_page_id: encodePageId([order, String(each.seq)]) }
    }
    if (page.scannedTo !== undefined && ++reads === MAX_LIST_READS)
      return { items, next_page_id: encodePageId([order, String(page.scannedTo)]) }
  }
  return { items, next_page_id: null }
}

function rangeOf(pageId: string | undefined, order: ListTasks['order']): { afterSeq?: number; beforeSeq?: number } {
  if (pageId === undefined) return {}
  const position = decodePageId(pageId)
  const seq = Number(position?.[1])
  if (position?.[0] === order && Number.isSafeInteger(seq) && seq > 0)
    return order === 'asc' ? { afterSeq: seq } : { beforeSeq: seq }
  throw new Problem(
    'invalid_cursor',
    'page_id was not issued for this order; leave it out to start from the first page.',
  )
}

/** Returns the final update of each ended task, by id. Reads the log once, starting at the first of them. */
async function lastUpdates(
  log: Log,
  postedTasks: readonly PostedTask[],
  open: OpenTasks,
): Promise<ReadonlyMap<string, TaskUpdate>> {
  const wantedIds = new Set(
    postedTasks.map(({ task_id }) => task_id).filter((id) => !open.some((task) => task.id === id)),
  )
  const foundUpdates = new Map<string, TaskUpdate>()
  if (wantedIds.size === 0) return foundUpdates
  const afterSeq = Math.min(...postedTasks.filter(({ task_id }) => wantedIds.has(task_id)).map(({ seq }) => seq))
  for await (const event of updates(log, { afterSeq })) {
    if (wantedIds.has(event.task_id) && !isOpen(event.status)) foundUpdates.set(event.task_id, event)
    if (foundUpdates.size === wantedIds.size) break
  }
  return foundUpdates
}

function taskView(postedTask: PostedTask, open: OpenTasks, last: ReadonlyMap<string, TaskUpdate>): Task {
  const task = postedView(postedTask)
  const now = open.find(({ id }) => id === task.id)
  if (now) {
    const { status, runId, progress, updatedAt } = now
    const news = { ...(runId !== undefined && { run_id: runId }), ...(progress && { progress }) }
    return { ...task, ...news, status, updated_at: updatedAt }
  }
  const end = last.get(task.id)
  if (!end) return task
  const { status, run_id, result, message, timestamp } = end
  return {
    ...task,
    status,
    ...(run_id !== undefined && { run_id }),
    ...(result && { result }),
    ...(message !== undefined && { message }),
    updated_at: timestamp,
  }
}

const isPosted = (event: { type: string }): event is PostedTask => event.type === 'TaskUpdate' && 'runnable' in event

async function* updates(
  log: Log,
  range: { afterSeq?: number; since?: string; until?: string },
): AsyncGenerator<TaskUpdate, void, void> {
  for await (const { events } of readPages(log, { ...range, types: TYPES, limit: PAGE }))
    for (const { event } of events) if (event.type === 'TaskUpdate') yield event
}
