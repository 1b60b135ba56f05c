/** Finds conversations by an id, or its beginning or end, and the one with the latest event. */
import type { AgentServerClient } from '../../client/client.ts'
import type { QueryFor } from '../../client/operations/operations.ts'
import type { ConversationView } from '../../contract/conversation.ts'
import { UsageError } from '../command-line/usage-error.ts'
import { CONVERSATION_ID } from '../../contract/values/conversation-id.ts'

const MIN_PREFIX = 4
const DAY_MS = 24 * 60 * 60 * 1000
/** Most people continue what they did lately, and a server may have many older conversations. */
const RECENT_DAYS = [1, 30] as const
const PAGE = 100

/** Returns true if the id of the conversation begins or ends with `text`, in upper or lower case. */
export function isPartOf({ id }: ConversationView, text: string): boolean {
  const part = text.toLowerCase()
  return id.startsWith(part) || id.endsWith(part)
}

/** Throws a `UsageError` unless there is exactly one. */
export async function findConversation(
  client: AgentServerClient,
  id: string,
  signal: AbortSignal,
): Promise<ConversationView> {
  if (CONVERSATION_ID.test(id)) return await client.conversation(id.toLowerCase()).get({ signal })
  if (id.length < MIN_PREFIX || !/^[0-9a-f-]+$/i.test(id))
    throw new UsageError(`${id} is not the ID of a conversation.`)
  const all = await recentConversations(client, {}, signal)
  const [only, ...others] = all.filter((view) => isPartOf(view, id))
  if (only === undefined) throw new UsageError(`there is no conversation ${id}; see agent-server sessions list.`)
  if (others.length > 0)
    throw new UsageError(`${others.length + 1} conversations begin or end with ${id}; give more of the ID.`)
  return only
}

/**
 * Considers only conversations in the directory `workdir`, if that is given. Returns undefined if no conversation is
 * found.
 */
export async function latestConversation(
  client: AgentServerClient,
  workdir: string | undefined,
  signal: AbortSignal,
): Promise<ConversationView | undefined> {
  const [latest] = await latestConversations(client, { count: 1, workdir }, signal)
  return latest
}

type WantedConversation = {
  readonly count: number
  readonly workdir?: string | undefined
  readonly search?: string | undefined
  readonly labels?: readonly string[]
}

/** The filter of a list: all of these labels. */
export const labelFilter = (labels: readonly string[] = []) => (labels.length > 0 ? { label: [...labels] } : {})

/** Returns at most `count`, the one with the latest event first. */
export async function latestConversations(
  client: AgentServerClient,
  { count, workdir, search, labels }: WantedConversation,
  signal: AbortSignal,
): Promise<ConversationView[]> {
  const since = RECENT_DAYS.map((days) => ({ updated_after: new Date(Date.now() - days * DAY_MS).toISOString() }))
  let foundViews: ConversationView[] = []
  for (const filter of [...since, {}]) {
    const wantedFilter = { ...filter, ...labelFilter(labels), ...(search !== undefined && { q: search }) }
    const all = await recentConversations(client, wantedFilter, signal)
    foundViews = workdir === undefined ? all : all.filter((view) => view.workdir === workdir)
    if (foundViews.length >= count) break
  }
  return foundViews.slice(0, count)
}

/** The one with the latest event first. */
export async function recentConversations(
  client: AgentServerClient,
  filter: Pick<QueryFor<'listConversations'>, 'updated_after' | 'q' | 'label'>,
  signal: AbortSignal,
): Promise<ConversationView[]> {
  const all: ConversationView[] = []
  for await (const view of client.conversations.list({ ...filter, limit: PAGE }, { signal })) all.push(view)
  // The list begins with what was created last, and what is equal keeps its place.
  return all.toSorted((a, b) => b.updated_at.localeCompare(a.updated_at))
}
