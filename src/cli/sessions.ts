/** `agent-server sessions`: lists, shows, exports and deletes conversations, with a server or without. */
import { realpath } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { ConversationView } from '../contract/conversation.ts'
import { AgentServerError } from '../client/request/agent-server-error.ts'
import type { AgentServerClient } from '../client/client.ts'
import type { ConversationHandle } from '../client/conversation/conversation-handle.ts'
import { describeEvent } from '../contract/events/describe-event.ts'
import type { SessionsInvocation } from './command-line/read-arguments.ts'
import { ageOf, nameOf, placeOf, stateOf } from './conversation/describe-conversation.ts'
import {
  findConversation,
  labelFilter,
  latestConversations,
  recentConversations,
} from './conversation/find-conversation.ts'
import { isInUse } from './conversation/refuse-resume.ts'
import { openStored } from './conversation/open-stored.ts'
import { oneLine } from '../telemetry/plain-text.ts'
import { say, sayError, sayJson } from './terminal/terminal.ts'

export async function sessions(invocation: SessionsInvocation): Promise<void> {
  const { signal } = new AbortController()
  const cwd = await directoryOf(invocation)
  await using host = await openStored(invocation, signal)
  await ACTIONS[invocation.action](host.client, { ...invocation, cwd }, signal)
}

type Action = (client: AgentServerClient, invocation: SessionsInvocation, signal: AbortSignal) => Promise<void>

const ACTIONS: Readonly<Record<SessionsInvocation['action'], Action>> = {
  async list(client, { limit, json, search, labels, cwd: workdir }, signal) {
    const views = await latestConversations(client, { count: limit, workdir, search, labels }, signal)
    const show = json ? sayJson : (view: ConversationView) => print(rowOf(view))
    for (const view of views) show(view)
    if (views.length === 0 && !json) sayError('There are no conversations.\n')
  },
  async show(client, { id = '', json }, signal) {
    const view = await findConversation(client, id, signal)
    if (json) return sayJson(view)
    for (const line of factsOf(view)) print(line)
    print('')
    for await (const event of client.conversation(view.id).listEvents({ limit: PAGE }, { signal }))
      print(oneLine(`${event.timestamp.slice(0, SECONDS)}  ${describeEvent(event)}`))
  },
  async export(client, { id = '' }, signal) {
    const { id: foundId } = await findConversation(client, id, signal)
    for await (const event of client.conversation(foundId).listEvents({ limit: PAGE }, { signal })) sayJson(event)
  },
  async rename(client, { id = '', title = '' }, signal) {
    const { id: foundId } = await findConversation(client, id, signal)
    await client.conversation(foundId).updateConfig({ title }, { signal })
    sayError(`Renamed ${foundId}.\n`)
  },
  async prune(client, { olderThanMs = Infinity, labels, cwd: workdir }, signal) {
    const before = Date.now() - olderThanMs
    let count = 0
    const isLeft = (view: ConversationView) => Date.parse(view.updated_at) < before && !isInUse(view)
    for (const foundView of await recentConversations(client, labelFilter(labels), signal)) {
      const isElsewhere = workdir !== undefined && foundView.workdir !== workdir
      if (isElsewhere || !isLeft(foundView)) continue
      const conversation = client.conversation(foundView.id)
      // The others may have taken minutes, in which somebody has continued this one.
      const now = await viewNow(conversation, foundView, signal)
      if (!now || !isLeft(now)) continue
      await conversation.delete({ signal })
      count += 1
    }
    sayError(`Deleted ${count} ${count === 1 ? 'conversation' : 'conversations'}.\n`)
  },
  async delete(client, { id = '' }, signal) {
    const { id: foundId } = await findConversation(client, id, signal)
    await client.conversation(foundId).delete({ signal })
    sayError(`Deleted ${foundId}.\n`)
  },
}

/** Undefined if it was deleted. One that cannot be read is as it was listed. */
async function viewNow(
  conversation: ConversationHandle,
  listedView: ConversationView,
  signal: AbortSignal,
): Promise<ConversationView | undefined> {
  try {
    return await conversation.get({ signal })
  } catch (error) {
    const code = error instanceof AgentServerError ? error.code : undefined
    if (code === 'conversation_damaged') return listedView
    if (code === 'conversation_deleted' || code === 'conversation_not_found') return undefined
    throw error
  }
}

const PAGE = 500

/** Characters of a timestamp up to its seconds. */
const SECONDS = '2026-01-31T12:00:00'.length

const print = (line: string): void => say(`${line}\n`)

/** A directory of this machine under its real name, as conversations have it. Call it before the process leaves its own. */
async function directoryOf({ cwd, server }: SessionsInvocation): Promise<string | undefined> {
  if (cwd === undefined || server !== undefined) return cwd
  const path = resolve(cwd)
  return await realpath(path).catch(() => path)
}

function rowOf(view: ConversationView): string {
  const age = ageOf(view).padStart(AGE_WIDTH)
  const place = placeOf(view).padEnd(PLACE_WIDTH)
  return `${view.id}  ${age}  ${stateOf(view).padEnd(STATUS_WIDTH)}  ${place}  ${nameOf(view)}`
}

const [AGE_WIDTH, STATUS_WIDTH, PLACE_WIDTH] = [4, 'finished'.length, 16]

function factsOf({
  id,
  title,
  preview,
  labels,
  status,
  workdir,
  llm_config,
  created_at,
  updated_at,
  last_seq,
}: ConversationView): string[] {
  const facts = [
    ['Conversation', id],
    ['Title', title ?? preview],
    ['Labels', labels?.join(', ')],
    ['Status', status],
    ['Directory', workdir],
    ['Model', llm_config.model],
    ['Created', created_at],
    ['Updated', updated_at],
    ['Events', String(last_seq)],
  ]
  return facts.flatMap(([name = '', value]) => (value === undefined ? [] : [oneLine(`${name.padEnd(13)} ${value}`)]))
}
