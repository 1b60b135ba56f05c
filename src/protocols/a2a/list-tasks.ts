/** Lists tasks that a key may see: all of a context, or the newest of each conversation, in the order of their last change. */
import { z } from 'zod'
import { ListConversations } from '../../contract/conversation.ts'
import type { ProblemCode } from '../../contract/problem.ts'
import { Problem } from '../../contract/problem.ts'
import type { Status } from '../../contract/events/status.ts'
import { visibleTo } from '../../http/guards/authorize.ts'
import { findThread } from '../shared/find-thread.ts'
import { parseField } from '../shared/fields.ts'
import type { A2aTask } from './a2a-objects.ts'
import { TASK_STATES } from './a2a-objects.ts'
import type { A2aCall, A2aDeps } from './call.ts'
import { HistoryLength } from './message-request.ts'
import type { TaskProjection } from './task-projection.ts'
import { beginnings, readTask } from './tasks.ts'

const MAX_PAGE = 100
const DEFAULT_PAGE = 50
/** Tasks that are read for one page: a filter may fit none. */
const MAX_READ = 100
/** Bytes of JSON after which a page ends. */
const MAX_PAGE_BYTES = 4 * 1024 * 1024
/** Conversations of which a list of the newest tasks learns at a time. */
const CHUNK = 10

/** A query has texts. */
const Flag = z
  .union([z.boolean(), z.literal(['true', 'false']).transform((text) => text === 'true')])
  .nullish()
  .transform((flag) => flag ?? false)

const OptionalText = z
  .string()
  .nullish()
  .transform((text) => text || undefined)

/** The states of the protocol: no task has the last two here. */
const StateFilter = z
  .enum(['TASK_STATE_UNSPECIFIED', ...TASK_STATES, 'TASK_STATE_REJECTED', 'TASK_STATE_AUTH_REQUIRED'])
  .or(z.literal(''))
  .nullish()
  .transform((state) => (state === 'TASK_STATE_UNSPECIFIED' ? undefined : state || undefined))

const ListParams = z.looseObject({
  contextId: OptionalText,
  status: StateFilter,
  pageSize: z.coerce.number().int().min(1).max(MAX_PAGE).nullish(),
  pageToken: OptionalText,
  historyLength: HistoryLength.transform((length) => length ?? 0),
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
  const page = new Page(params, pageSize)
  let [totalSize, nextPageToken, last] = [0, '', 0]
  for await (const { seq, run_id: runId } of beginnings(conversation)) {
    totalSize++
    if (seq >= before || nextPageToken !== '') continue
    if (page.isFull) nextPageToken = String(last)
    else {
      const { projection } = await readTask({ conversation, start: seq, runId })
      page.add(projection)
      last = seq
    }
  }
  return { tasks: page.tasks, nextPageToken, totalSize }
}

const PageToken = z.coerce.number().int().positive()

/** The tasks of a page that fit, as lists show them. */
class Page {
  readonly tasks: A2aTask[] = []
  readonly #params: ListParams
  readonly #size: number
  #readCount = 0
  #bytes = 0

  constructor(params: ListParams, size: number) {
    this.#params = params
    this.#size = size
  }

  get isFull(): boolean {
    return this.tasks.length >= this.#size || this.#readCount >= MAX_READ || this.#bytes >= MAX_PAGE_BYTES
  }

  add(projection: TaskProjection): void {
    const { historyLength, includeArtifacts: hasArtifacts } = this.#params
    const task = projection.task({ historyLength, hasArtifacts, hasFiles: false })
    this.#readCount++
    if (!fits(task, this.#params)) return
    this.tasks.push(task)
    this.#bytes += Buffer.byteLength(JSON.stringify(task))
  }
}

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
  const { statusTimestampAfter: after, status } = params
  const filter = {
    ...(after && { updated_after: new Date(after).toISOString() }),
    ...(status !== undefined && STATUSES[status] && { status: STATUSES[status] }),
  }
  const query = { ...ListConversations.parse({}), ...filter, sort: 'updated_at' as const }
  const page = new Page(params, pageSize)
  let page_id = params.pageToken
  let remainingCount = pageSize
  do {
    const limit = Math.min(remainingCount, CHUNK)
    const { items, next_page_id } = await manager.summaries(
      { ...query, limit, ...(page_id !== undefined && { page_id }) },
      visibleTo(access),
    )
    for (const { id } of items) {
      const projection = await newestTask(deps, id)
      if (projection) page.add(projection)
    }
    page_id = next_page_id ?? undefined
    remainingCount -= limit
  } while (page_id !== undefined && remainingCount > 0 && !page.isFull)
  return { tasks: page.tasks, nextPageToken: page_id ?? '', totalSize: manager.count(filter, visibleTo(access)).count }
}

/**
 * Reads it as it is stored: another instance may have it. Undefined without any, and for a conversation that is deleted meanwhile, or
 * damaged.
 */
async function newestTask({ manager }: Pick<A2aDeps, 'manager'>, id: string): Promise<TaskProjection | undefined> {
  try {
    await using conversation = await manager.pages.stored(id)
    for await (const { seq: start, run_id: runId } of beginnings(conversation))
      return (await readTask({ conversation, start, runId })).projection
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    if (!GONE.has(error.code)) throw error
  }
  return undefined
}

const GONE: ReadonlySet<ProblemCode> = new Set([
  'conversation_not_found',
  'conversation_deleted',
  'conversation_damaged',
  'message_not_found',
])
