/** An agent that works is a task. Its id has the conversation and the event after which it began, so that nothing is kept. */
import { ProtocolError } from '@modelcontextprotocol/server'
import { z } from 'zod'
import type { AgentReport } from './agent-report.ts'
import { isEnd, resultOf } from './agent-report.ts'
import type { AgentLook, AgentSource, FoundAgent } from './agents.ts'
import type { McpTask, WorkingTask } from './task-extension.ts'
import { unknownTask } from './task-extension.ts'
import type { FollowedTasks } from './task-subscription.ts'

type Options = {
  readonly openAgents: () => Promise<AgentSource>
  readonly explain: (error: unknown) => string | Promise<string>
}

/** How often a client should ask, in milliseconds. */
const POLL_MS = 2000
/** The code of JSON-RPC for what this server refuses. */
const REFUSED = -32_000

const TaskId = z.templateLiteral([z.uuid(), '.', z.string().regex(/^\d{1,15}$/)])

/** Returns undefined for an id that none of these tasks has. */
export function placeOfTask(taskId: string): { readonly conversationId: string; readonly seq: number } | undefined {
  if (!TaskId.safeParse(taskId).success) return undefined
  const [conversationId = '', seq] = taskId.split('.')
  return { conversationId: conversationId.toLowerCase(), seq: Number(seq) }
}

/** Returns the task of an agent that works after this report. */
export async function taskOf(agent: FoundAgent, { seq }: AgentReport): Promise<WorkingTask> {
  const event = await agent.eventAt(seq)
  if (!event) throw unknownTask()
  return { ...headOf(agent.id, seq, event.timestamp), status: 'working' }
}

export const agentTasks = (options: Options): FollowedTasks => ({
  get: async (taskId) => await stateOf(await find(options, taskId)),
  async cancel(taskId) {
    const { agent, seq } = await find(options, taskId)
    if ((await endAfter(agent, seq)) !== undefined) return
    await agent.interrupt().catch(async (error: unknown) => {
      throw new ProtocolError(REFUSED, await options.explain(error))
    })
  },
  async end(taskId, signal) {
    const task = await find(options, taskId)
    for await (const event of task.agent.events(task.seq, signal)) if (isEnd(event)) break
    return await stateOf(task)
  },
  // Decisions and answers have other tools: a task waits for none.
  async update(taskId) {
    await find(options, taskId)
  },
})

type FoundTask = { readonly agent: FoundAgent; readonly seq: number; readonly begunAt: string }

async function find({ openAgents, explain }: Options, taskId: string): Promise<FoundTask> {
  const place = placeOfTask(taskId)
  if (!place) throw unknownTask()
  const agents = await openAgents()
  const { conversationId, seq } = place
  const read = async () => {
    const agent = await agents.find(conversationId)
    return { agent, first: await agent.eventAt(seq) }
  }
  const { agent, first } = await read().catch(async (error: unknown) => {
    throw unknownTask(await explain(error))
  })
  if (!first) throw unknownTask()
  return { agent, seq, begunAt: first.timestamp }
}

async function stateOf({ agent, seq, begunAt }: FoundTask): Promise<McpTask> {
  const now = await agent.look()
  const end = await endAfter(agent, seq)
  const task = headOf(agent.id, seq, begunAt, end?.at ?? (await agent.eventAt(now.lastSeq))?.timestamp)
  if (!end && now.status === 'running') return { ...task, status: 'working' }
  if (end?.isInterrupted) return { ...task, status: 'cancelled' }
  // What waits was not there before the end, and what has been answered is not listed.
  const look = !end || end.look.status === now.status ? { ...now, ...end?.look } : { ...end.look, requests: [] }
  return { ...task, status: 'completed', result: resultOf(agent.id, look) }
}

const headOf = (conversationId: string, seq: number, createdAt: string, lastUpdatedAt = createdAt) => ({
  taskId: `${conversationId}.${seq}`,
  createdAt,
  lastUpdatedAt,
  // A task lasts as long as its conversation.
  ttlMs: null,
  pollIntervalMs: POLL_MS,
})

type AgentEnd = { readonly at: string; readonly isInterrupted: boolean; readonly look: Omit<AgentLook, 'requests'> }

/** Returns how the agent came to rest after a seq at which it worked; undefined: it works. */
async function endAfter(agent: FoundAgent, seq: number): Promise<AgentEnd | undefined> {
  let result: AgentLook['result']
  let error: AgentLook['error']
  for await (const event of agent.ends(seq)) {
    if (event.type === 'StatusUpdate') {
      const { status, timestamp: at, seq: lastSeq } = event
      if (status === 'running') continue
      const look = { status, lastSeq, ...(result && { result }), ...(error && { error }) }
      return { at, isInterrupted: result?.interrupted ?? false, look }
    }
    if (event.parent_tool_use_id !== undefined) continue
    if (event.type === 'Result') result = event
    else error = { type: event.error_type, message: event.message }
  }
  return undefined
}
