/** The agents of this server, for the key of a request. The only file of this protocol that decides what a key may do. */
import type { FastifyRequest } from 'fastify'
import type { Access } from '../../access/access.ts'
import { CreateConversation } from '../../contract/conversation.ts'
import type { Event } from '../../contract/events/event.ts'
import { holds } from '../../contract/events/rewound.ts'
import { Problem } from '../../contract/problem.ts'
import { AnswerRequest } from '../../contract/request.ts'
import { UserInput } from '../../contract/values/message.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import type { ConversationManager } from '../../conversations/manager.ts'
import { startFirstRun } from '../../conversations/runs/first-run.ts'
import type { Profiles } from '../../conversations/profiles/profiles.ts'
import { closedProblem } from '../../events/closed-problem.ts'
import { follow } from '../../events/event-feed.ts'
import { readPages } from '../../events/read-pages.ts'
import { accessOf, createAuthorize } from '../../http/guards/authorize.ts'
import { createOrFind } from '../../http/guards/create-or-find.ts'
import { createAs } from '../../http/guards/limited-requests.ts'
import type { StreamSlots } from '../../http/streams/stream-slots.ts'
import { answerAs } from '../shared/answer-as.ts'
import { hasMode } from '../shared/create-request.ts'
import { parseField } from '../shared/fields.ts'
import type { AgentSource, AgentLook, AgentStart, EndEvent, FoundAgent } from './agents.ts'

export type McpDeps = {
  readonly manager: ConversationManager
  readonly profiles: () => Promise<Profiles>
  readonly streamSlots: StreamSlots
  /** The origins of pages that may send requests. */
  readonly corsOrigins: readonly string[]
  readonly version: string
}

/** `keep` is called with what keeps a conversation open while its request waits. */
export function servedAgents(deps: McpDeps, request: FastifyRequest, keep: (release: () => void) => void): AgentSource {
  const { manager } = deps
  const access = accessOf(request)
  const authorize = createAuthorize(manager)
  const open = async (id: string): Promise<Conversation> => {
    await authorize.conversation(access, id)
    keep(manager.hold(id))
    const conversation = await manager.open(id)
    request.conversationId = id
    return conversation
  }
  return {
    async start(start) {
      access.require('write')
      const { view } = await createOrFind(manager, access, await wishFor(deps, access, start))
      const conversation = await open(view.id)
      await startFirstRun(conversation)
      return agentIn(deps, conversation, access)
    },
    find: async (id) => agentIn(deps, await open(id), access),
  }
}

/** Calls that change something need a decision unless the profile has a mode. */
async function wishFor(
  deps: McpDeps,
  access: Access,
  { prompt, workdir, profile = 'default' }: AgentStart,
): Promise<CreateConversation> {
  const wish = parseField(CreateConversation, { profile, initial_message: prompt, ...(workdir && { workdir }) })
  const mode = (await hasMode(deps, profile)) ? {} : { permission_mode: 'default' as const }
  return { ...createAs(access, wish), ...mode }
}

function agentIn(deps: McpDeps, conversation: Conversation, access: Access): FoundAgent {
  const { id } = conversation
  return {
    id,
    async look() {
      access.requireValid()
      const { status, last_seq: lastSeq } = conversation.view()
      const requests = conversation.requests.list()
      return { status, lastSeq, requests, ...(status !== 'running' && (await lastEnd(conversation))) }
    },
    events: (after, signal) => eventsOf(deps, conversation, after, signal),
    ends: (after) => endsIn(conversation, after),
    async eventAt(seq) {
      const { events } = await conversation.log.read({ afterSeq: seq - 1, beforeSeq: seq + 1, limit: 1 })
      return events[0]?.event
    },
    async send(prompt) {
      access.require('write')
      await conversation.post({ message: parseField(UserInput, { role: 'user', content: prompt }), run: true })
    },
    async answer(requestId, answer) {
      await answerAs(conversation, access, [{ requestId, answer: parseField(AnswerRequest, answer) }])
    },
    async interrupt() {
      access.require('write')
      await conversation.pause({ interrupt: true })
    },
  }
}

/** A wait takes a slot of a stream. Ends at once if none is free: what was done is reported, and not an error. */
async function* eventsOf(
  { streamSlots }: McpDeps,
  { id, log }: Conversation,
  afterSeq: number,
  signal: AbortSignal,
): AsyncGenerator<Event> {
  const leave = freeSlotOf(streamSlots, id)
  try {
    for await (const { records, end } of leave ? follow(log, { afterSeq, signal }) : []) {
      for (const { event, seq } of records) if (seq !== undefined) yield event
      if (end === 'lagged') throw new Problem('unavailable', 'The events came too fast. Call get_agent.')
      if (end && end !== 'aborted') throw closedProblem(end)
    }
  } finally {
    leave?.()
  }
}

function freeSlotOf(slots: StreamSlots, id: string): (() => void) | undefined {
  try {
    return slots.take(id)
  } catch (error) {
    if (error instanceof Problem) return undefined
    throw error
  }
}

const ENDS: ReadonlySet<string> = new Set<EndEvent['type']>(['StatusUpdate', 'Result', 'ErrorEvent'])

async function* endsIn({ log }: Conversation, afterSeq: number): AsyncGenerator<EndEvent> {
  for await (const { events } of readPages(log, { types: ENDS, afterSeq, limit: PAGE }))
    for (const { event } of events)
      if (event.type === 'StatusUpdate' || event.type === 'Result' || event.type === 'ErrorEvent') yield event
}

const RESULTS: ReadonlySet<string> = new Set(['Result'])
const PAGE = 20

/** The newest results may be of subagents. */
async function lastEnd(conversation: Conversation): Promise<Pick<AgentLook, 'result' | 'error'>> {
  const { log, state } = conversation
  for await (const { events } of readPages(log, { types: RESULTS, order: 'desc', limit: PAGE }))
    for (const { event } of events) {
      if (event.type !== 'Result' || event.parent_tool_use_id !== undefined || !holds(state.rewound, event)) continue
      if (event.run_id === undefined) continue
      const { result, error } = await conversation.waitForRun(event.run_id, 0, AbortSignal.abort())
      return { ...(result && { result }), ...(error && { error }) }
    }
  return {}
}
