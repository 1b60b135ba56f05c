/** Opens the session of a query: a new one, one that is continued, or a copy. */
import { AgentServerError } from '../../client/request/agent-server-error.ts'
import type { AgentServerClient } from '../../client/client.ts'
import type { ConversationHandle } from '../../client/conversation/conversation-handle.ts'
import type { Status } from '../../contract/events/status.ts'
import { uuid7 } from '../../lib/uuid7.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import { removeLeftHooks } from '../hooks/left-hooks.ts'
import { invalid } from '../errors/invalid.ts'
import type { OwnOptions } from '../options/other-names.ts'
import type { Prompt } from '../options/query-options.ts'
import { createBody, updateBody, workdirOf } from '../options/request-bodies.ts'
import { splitTools } from '../options/split-tools.ts'
import type { StoppedSession } from './stopped-session.ts'
import { hasWork, readStopped } from './stopped-session.ts'
import { isIterable } from './prompt-pump.ts'

export type OpenSession = {
  readonly conversation: ConversationHandle
  readonly isNew: boolean
  readonly status: Status
  /** The events of the query begin after it. */
  readonly after: number
  /** What waits there since an earlier query. */
  readonly waiting: StoppedSession['waiting']
}

type Opening = { readonly prompt: Prompt | undefined; readonly options: OwnOptions; readonly signal: AbortSignal }

export async function openSession(client: AgentServerClient, opening: Opening): Promise<OpenSession> {
  const { options, signal } = opening
  const original = await originalOf(client, options, signal)
  refuseUnusedPlace(options, original)
  return original === undefined
    ? await createSession(client, options, signal)
    : await continueSession(client, original, opening)
}

async function createSession(
  client: AgentServerClient,
  options: OwnOptions,
  signal: AbortSignal,
): Promise<OpenSession> {
  const { id } = await client.conversations.create(createBody(options, uuid7()), { signal }).catch(explainMissingModel)
  return { conversation: client.conversation(id), isNew: true, status: 'idle', after: 0, waiting: [] }
}

function explainMissingModel(error: unknown): never {
  if (error instanceof AgentServerError && error.message.startsWith('llm_config.model is missing'))
    throw invalid('There is no model. Pass the option model, or set LLM_MODEL for the server.')
  throw error
}

async function continueSession(
  client: AgentServerClient,
  original: string,
  { prompt, options, signal }: Opening,
): Promise<OpenSession> {
  const changes = updateBody(options)
  if (prompt === undefined) await requireWork(client.conversation(original), signal)
  const id = options.fork ? await copyOf(client.conversation(original), options, signal) : original
  const conversation = client.conversation(id)
  // The events of the query begin here: a change of the configuration is one of them.
  const { last_seq, status, client_hooks } = await conversation.get({ signal })
  const { waiting } = mayAnswer(prompt, options)
    ? await readStopped(conversation, { status, last_seq }, { signal })
    : { waiting: [] }
  await removeLeftHooks(conversation, client_hooks, signal)
  if (changes) await conversation.updateConfig(changes, { signal })
  await addRules(conversation, options, signal)
  return { conversation, isNew: false, status, after: last_seq, waiting }
}

/** A session keeps its id and all its events: only a copy can have another id, or fewer. */
function refuseUnusedPlace({ sessionId, resumeSessionAt, fork }: OwnOptions, original: string | undefined): void {
  if (resumeSessionAt !== undefined && !fork)
    throw invalid('resumeSessionAt is the end of a copy, because a session keeps all its events. Pass fork: true, too.')
  if (sessionId !== undefined && original !== undefined && !fork)
    throw invalid('sessionId is the id of a new session, or of a copy. Pass resume alone, or fork: true, too.')
}

async function copyOf(
  original: ConversationHandle,
  { sessionId, resumeSessionAt: last }: OwnOptions,
  signal: AbortSignal,
): Promise<string> {
  const at_seq = typeof last === 'string' ? (await original.getEvent(last, { signal })).seq : last
  const { id } = await original.fork(withoutUndefined({ id: sessionId, at_seq }), { signal })
  return id
}

/** Throws before anything is changed, or copied. */
async function requireWork(conversation: ConversationHandle, signal: AbortSignal): Promise<void> {
  const stoppedSession = await readStopped(conversation, await conversation.get({ signal }), { signal })
  if (!(await hasWork(conversation, stoppedSession, { signal }))) throw nothingLeft(conversation.id)
}

export const nothingLeft = (id: string): AgentServerError =>
  invalid(`There is nothing to continue in session ${id}: no message is unanswered, and nothing waits. Pass a prompt.`)

/** A single message takes the place of all answers, except those of the tools of this program. */
const mayAnswer = (prompt: Prompt | undefined, { tools }: OwnOptions): boolean =>
  prompt === undefined || isIterable(prompt) || splitTools(tools).own.length > 0

/** Rules of earlier queries stay. */
async function addRules(
  { permissionRules }: ConversationHandle,
  { allowedTools = [], disallowedTools = [] }: OwnOptions,
  signal: AbortSignal,
): Promise<void> {
  if (allowedTools.length + disallowedTools.length === 0) return
  const { allow, ask, deny } = await permissionRules.get({ signal })
  const rules = { allow: union(allow, allowedTools), ask, deny: union(deny, disallowedTools) }
  if (rules.allow.length > allow.length || rules.deny.length > deny.length)
    await permissionRules.replace(rules, { signal })
}

const union = (some: readonly string[], more: readonly string[]) => [...new Set([...some, ...more])]

/** Undefined for a new session. */
async function originalOf(
  client: AgentServerClient,
  options: OwnOptions,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { resume, fork, continue: last } = options
  const namedSessions = [resume, typeof fork === 'string' ? fork : undefined, last ? 'continue' : undefined]
  if (namedSessions.filter((each) => each !== undefined).length > 1)
    throw invalid('resume, continue and the id in fork each name a session. Pass one of them.')
  if (last) return await newestOf(client, workdirOf(options), signal)
  const id = resume ?? (typeof fork === 'string' ? fork : undefined)
  if (fork === true && id === undefined)
    throw invalid('fork: true copies a session. Pass its id as resume, or as fork.')
  return id
}

async function newestOf(client: AgentServerClient, workdir: string | undefined, signal: AbortSignal): Promise<string> {
  let newest: { readonly id: string; readonly updated_at: string } | undefined
  for await (const each of client.conversations.list({ limit: 1000 }, { signal }))
    if ((workdir === undefined || each.workdir === workdir) && each.updated_at > (newest?.updated_at ?? ''))
      newest = each
  if (newest) return newest.id
  throw invalid(`There is no session to continue${workdir === undefined ? '' : ` in ${workdir}`}. Leave out continue.`)
}
