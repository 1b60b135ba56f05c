/** Finds tasks in the logs of the conversations that a key sees, and reads them as they are stored. */
import type { Access } from '../../access/access.ts'
import type { EventOf } from '../../contract/events/event.ts'
import { holds } from '../../contract/events/rewound.ts'
import { readPages } from '../../events/read-pages.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import type { GatewayDeps } from '../shared/gateway-deps.ts'
import { userMessages } from '../shared/user-messages.ts'
import { readTurn } from '../items/follow-turn.ts'
import type { TurnLog } from '../items/follow-turn.ts'
import { taskNotFound } from './a2a-error.ts'
import { parseTaskId } from './task-id.ts'
import { TaskProjection } from './task-projection.ts'

/** `start`: seq of the message that it begins with. */
export type FoundTask = {
  readonly conversation: Conversation
  readonly start: number
  readonly runId: string | undefined
}

/** Throws for a task that does not exist, and for one that the key does not see. */
export async function findTask(
  { manager }: Pick<GatewayDeps, 'manager'>,
  access: Access,
  text: string,
): Promise<FoundTask> {
  const id = parseTaskId(text)
  if (!id) throw taskNotFound()
  await manager.upToDate()
  const owner = manager.ownerOf(id.conversationId)
  if (!owner || !access.sees(owner)) throw taskNotFound()
  const conversation = await manager.open(id.conversationId)
  const { log, state } = conversation
  const [first] = (await log.read({ afterSeq: id.start - 1, beforeSeq: id.start + 1, limit: 1 })).events
  if (first?.event.type !== 'UserMessage' || !holds(state.rewound, first.event)) throw taskNotFound()
  const beginning = first.event.run ? first.event : await firstTask(conversation)
  if (beginning?.seq !== id.start) throw taskNotFound()
  return { conversation, start: id.start, runId: beginning.run_id }
}

/** A conversation, or what is stored of one. */
export type ReadConversation = {
  readonly id: string
  readonly log: TurnLog
  readonly state: Pick<Conversation['state'], 'rewound' | 'settings'>
}
type ReadTask = { readonly conversation: ReadConversation; readonly start: number; readonly runId?: string | undefined }

export const contextOf = ({ id, state }: Pick<ReadConversation, 'id' | 'state'>): string =>
  state.settings.external_id ?? id

export const projectionOf = ({ conversation, start, runId }: ReadTask): TaskProjection =>
  new TaskProjection({ conversationId: conversation.id, start }, { contextId: contextOf(conversation), runId })

/** The task as far as it is stored, and the seq of the last event of the log. */
export async function readTask(
  task: ReadTask,
): Promise<{ readonly projection: TaskProjection; readonly head: number }> {
  const { log } = task.conversation
  const { head } = log
  const projection = projectionOf(task)
  for await (const step of readTurn(log, task.start, 'all')) {
    if ((step.seq ?? 0) > head) break
    projection.add(step)
    if (projection.isClosed) break
  }
  return { projection, head }
}

/** The message that a task begins with, and the run that reads it. */
type Beginning = { readonly seq: number; readonly run_id?: string | undefined }

/**
 * Yields where tasks begin, the newest first: with a message that starts a run, or with the first one of all. An agent at work
 * reads further ones within its task.
 */
export async function* beginnings(conversation: ReadConversation): AsyncGenerator<Beginning, void, void> {
  let oldest: EventOf<'UserMessage'> | undefined
  let first: EventOf<'UserMessage'> | undefined
  for await (const event of userMessages(conversation)) {
    oldest = event
    if (!event.run) continue
    if (first && first.run_id !== event.run_id) yield first
    first = event
  }
  const silent = oldest && !oldest.run ? await runOfSilent(conversation.log, oldest.seq, first?.seq) : undefined
  if (first && (!silent || first.run_id !== silent.run_id)) yield first
  if (silent) yield silent
}

const STATUSES: ReadonlySet<string> = new Set(['StatusUpdate'])
const PAGE = 20

/** The first message may have started no run: then another request has. Undefined if the run of a later message reads it. */
async function runOfSilent(log: TurnLog, seq: number, beforeSeq?: number): Promise<Beginning | undefined> {
  const range = { afterSeq: seq, types: STATUSES, limit: PAGE, ...(beforeSeq !== undefined && { beforeSeq }) }
  for await (const { events } of readPages(log, range))
    for (const { event } of events)
      if (event.type === 'StatusUpdate' && event.status === 'running') return { seq, run_id: event.run_id }
  return beforeSeq === undefined ? { seq } : undefined
}

async function firstTask(conversation: ReadConversation): Promise<Beginning | undefined> {
  let first: Beginning | undefined
  for await (const each of beginnings(conversation)) first = each
  return first
}

/** What no message has begun, such as a run after a subagent, belongs to the newest task. */
export async function isNewest({ conversation, runId }: FoundTask): Promise<boolean> {
  for await (const { run_id: newest } of beginnings(conversation)) return newest === runId
  return false
}
