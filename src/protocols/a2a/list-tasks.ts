/** Lists tasks that a key may see: all of a context, or the newest of each conversation, in the order of their last change. */
import { z } from 'zod'
import { ListConversations } from '../../contract/conversation.ts'
import { Problem } from '../../contract/problem.ts'
import type { Status } from '../../contract/events/status.ts'
import { visibleTo } from '../../http/guards/authorize.ts'
import { findThread } from '../shared/find-thread.ts'
import { parseField } from '../shared/fields.ts'
import type { A2aTask } from './a2a-objects.ts'
import type { A2aCall, A2aDeps } from './call.ts'
import { HistoryLength } from './message-request.ts'
import { beginnings, readTask } from './tasks.ts'

const MAX_PAGE = 100
const DEFAULT_PAGE = 50

/** A query has texts. */
const Flag = z
  .union([z.boolean(), z.literal(['true', 'false']).transform((text) => text === 'true')])
  .nullish()
  .transform((flag) => flag ?? false)

const OptionalText = z
  .string()
  .nullish()
  .transform((text) => text || undefined)

const ListParams = z.looseObject({
  contextId: OptionalText,
  status: z
    .string()
    .nullish()
    .transform((state) => (state === 'TASK_STATE_UNSPECIFIED' ? undefined : state || undefined)),
  pageSize: z.coerce.number().int().min(1).max(MAX_PAGE).nullish(),
  pageToken: OptionalText,
  historyLength: HistoryLength,
  statusTimestampAfter: z.iso.datetime({ offset: true }).nullish(),
  includeArtifacts: Flag,
})
type ListParams = z.infer<typeof ListParams>

type TaskPage = { readonly tasks: readonly A2aTask[]; readonly nextPageToken: string; readonly totalSize: number }

export async function listTasks(call: A2aCall): Promise<TaskPage & { readonly pageSize: number }> {
  const params = parseField(ListParams, call.params)
  const pageSize = params.pageSize ?? DEFAULT_PAGE
  const page =
    params.contextId === undefined
      ? await newestTasks(call, params, pageSize)
      : await tasksOfContext(call, params, pageSize)
  return { ...page, pageSize }
}

const NONE: TaskPage = { tasks: [], nextPageToken: '', totalSize: 0 }

async function tasksOfContext({ deps, access }: A2aCall, params: ListParams, pageSize: number): Promise<TaskPage> {
  const conversation = await findThread(deps, access, params.contextId ?? '')
  if (!conversation) return NONE
  const before = params.pageToken === undefined ? Infinity : parseField(PageToken, params.pageToken, 'pageToken')
  const tasks: A2aTask[] = []
  let [totalSize, nextPageToken, last] = [0, '', 0]
  for await (const { seq } of beginnings(conversation)) {
    totalSize++
    if (seq >= before || nextPageToken !== '') continue
    if (tasks.length === pageSize) nextPageToken = String(last)
    else {
      const { projection } = await readTask({ conversation, start: seq })
      const task = projection.task({ historyLength: params.historyLength, hasArtifacts: params.includeArtifacts })
      if (fits(task, params)) tasks.push(task)
      last = seq
    }
  }
  return { tasks, nextPageToken, totalSize }
}

const PageToken = z.coerce.number().int().positive()

const fits = (
  { status: { state, timestamp } }: A2aTask,
  { status, statusTimestampAfter: after }: ListParams,
): boolean => (status === undefined || status === state) && (!after || Date.parse(timestamp) >= Date.parse(after))

const WAITING: readonly Status[] = ['waiting_for_confirmation', 'waiting_for_input', 'waiting_for_client']

/** The conversations of the others are at rest. */
const STATUSES: Readonly<Record<string, ReadonlySet<Status>>> = {
  TASK_STATE_WORKING: new Set(['running']),
  TASK_STATE_INPUT_REQUIRED: new Set(WAITING),
}

async function newestTasks({ deps, access }: A2aCall, params: ListParams, pageSize: number): Promise<TaskPage> {
  const { manager } = deps
  const { pageToken: page_id, statusTimestampAfter: after, status } = params
  const filter = {
    ...(after && { updated_after: new Date(after).toISOString() }),
    ...(status !== undefined && STATUSES[status] && { status: STATUSES[status] }),
  }
  const query = { ...ListConversations.parse({}), ...filter, sort: 'updated_at' as const, limit: pageSize }
  const { items, next_page_id } = await manager.summaries(
    { ...query, ...(page_id !== undefined && { page_id }) },
    visibleTo(access),
  )
  const foundTasks: A2aTask[] = []
  for (const { id } of items) {
    const task = await newestTask(deps, id, params)
    if (task && fits(task, params)) foundTasks.push(task)
  }
  return { tasks: foundTasks, nextPageToken: next_page_id ?? '', totalSize: manager.count(filter, visibleTo(access)) }
}

/** Undefined without any, and for a conversation that is deleted meanwhile, or that another instance has. */
async function newestTask(
  { manager }: Pick<A2aDeps, 'manager'>,
  id: string,
  { historyLength, includeArtifacts: hasArtifacts }: ListParams,
): Promise<A2aTask | undefined> {
  try {
    const conversation = await manager.open(id)
    for await (const { seq: start } of beginnings(conversation))
      return (await readTask({ conversation, start })).projection.task({ historyLength, hasArtifacts })
  } catch (error) {
    if (!(error instanceof Problem)) throw error
  }
  return undefined
}
