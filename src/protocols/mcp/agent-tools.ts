/** The five tools with which another agent uses agents of this server. Rights are those of the key. */
import { McpServer } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { Hash } from '../../contract/values/permission.ts'
import type { ReportCaller } from './agent-report.ts'
import { AgentReport, reportOf } from './agent-report.ts'
import { agentTasks, taskOf } from './agent-tasks.ts'
import type { AgentSource, FoundAgent } from './agents.ts'
import type { DeclaringRequest } from './task-extension.ts'
import { pollsTasks, serveTasks, taskResult } from './task-extension.ts'

type Options = {
  /** Called by each call of a tool. */
  readonly openAgents: () => Promise<AgentSource>
  readonly version: string
  /** Whether agents can be started with a profile. */
  readonly hasProfiles: boolean
  /** Says what a caller may know of an error. */
  readonly explain: (error: unknown) => string | Promise<string>
}

/** Clients wait for a minute. */
const MAX_WAIT_S = 45
const DEFAULT_WAIT_S = 30

const Wait = z
  .number()
  .min(0)
  .max(MAX_WAIT_S)
  .default(DEFAULT_WAIT_S)
  .describe('Seconds to wait for the end. After that the status is `running`: call `get_agent` again.')
const Prompt = z.string().regex(/\S/, 'must not be blank').describe('What the agent is to do.')
const Id = z.uuid().toLowerCase().describe('`conversation_id` of an earlier result.')

const Start = z.object({
  prompt: Prompt,
  workdir: z.string().min(1).optional().describe('The absolute path of the directory in which it works.'),
  wait_seconds: Wait,
})
const StartOfProfile = Start.extend({
  profile: z.string().min(1).default('default').describe('The profile of the server that it is made from.'),
})

const OUTPUT = { outputSchema: AgentReport }
const CHANGES = { destructiveHint: true, openWorldHint: true }

export function agentTools(options: Options): McpServer {
  const { openAgents, version, hasProfiles } = options
  const server = new McpServer(
    { name: 'agent-server', version },
    { instructions: INSTRUCTIONS, capabilities: { tools: { listChanged: false } } },
  )
  serveTasks(server, agentTasks(options))
  const answer = answerer(options)

  server.registerTool(
    'start_agent',
    {
      description:
        'Starts an agent on a task, in a new conversation, and returns its answer, or its status after a wait.',
      inputSchema: hasProfiles ? StartOfProfile : Start,
      ...OUTPUT,
      annotations: CHANGES,
    },
    async ({ wait_seconds, prompt, workdir, ...more }, { mcpReq }) =>
      await answer(mcpReq, wait_seconds, async () => {
        const profile = 'profile' in more && typeof more.profile === 'string' ? more.profile : undefined
        return await (await openAgents()).start({ prompt, workdir, profile })
      }),
  )
  server.registerTool(
    'continue_agent',
    {
      description:
        'Sends a message to an agent, also while it works, and returns its answer, or its status after a wait.',
      inputSchema: z.object({ conversation_id: Id, prompt: Prompt, wait_seconds: Wait }),
      ...OUTPUT,
      annotations: CHANGES,
    },
    async ({ conversation_id, prompt, wait_seconds }, { mcpReq }) =>
      await answer(mcpReq, wait_seconds, async () => {
        const agent = await (await openAgents()).find(conversation_id)
        await agent.send(prompt)
        return agent
      }),
  )
  server.registerTool(
    'get_agent',
    {
      description: 'Waits for an agent that works, and returns its answer, its status and what it waits for.',
      inputSchema: z.object({ conversation_id: Id, wait_seconds: Wait }),
      ...OUTPUT,
      annotations: { readOnlyHint: true },
    },
    async ({ conversation_id, wait_seconds }, { mcpReq }) =>
      await answer(mcpReq, wait_seconds, async () => await (await openAgents()).find(conversation_id)),
  )
  addControls(server, options)
  return server
}

function addControls(server: McpServer, options: Options): void {
  const { openAgents } = options
  const answer = answerer(options)
  server.registerTool(
    'decide',
    {
      description: 'Allows or denies one call that an agent waits for, after a person has seen all of its input.',
      inputSchema: z.object({
        conversation_id: Id,
        request_id: z.uuid().toLowerCase(),
        tool_use_id: z.string().min(1),
        input_hash: Hash,
        behavior: z.enum(['allow', 'deny']),
        message: z.string().max(10_000).optional().describe('Why it is denied, for the agent.'),
        wait_seconds: Wait,
      }),
      ...OUTPUT,
      annotations: CHANGES,
    },
    async ({ conversation_id, request_id, wait_seconds, message, ...call }, { mcpReq }) =>
      await answer(mcpReq, wait_seconds, async () => {
        const agent = await (await openAgents()).find(conversation_id)
        const { behavior, ...which } = call
        const decision =
          behavior === 'allow'
            ? { ...which, behavior }
            : { ...which, behavior, ...(message !== undefined && { message }) }
        await agent.answer(request_id, { kind: 'permission', decisions: [decision] })
        return agent
      }),
  )
  server.registerTool(
    'stop_agent',
    {
      description: 'Interrupts an agent. `continue_agent` continues it.',
      inputSchema: z.object({ conversation_id: Id }),
      ...OUTPUT,
      annotations: { idempotentHint: true },
    },
    async ({ conversation_id }, { mcpReq }) =>
      await answer(mcpReq, 0, async () => {
        const agent = await (await openAgents()).find(conversation_id)
        await agent.interrupt()
        return agent
      }),
  )
}

/**
 * `seconds`: how long to wait for the end. A client that polls tasks gets one instead of the wait. An error after the
 * first step names the conversation, too: its agent works on.
 */
const answerer =
  ({ explain }: Options) =>
  async (request: McpRequest, seconds: number, act: () => Promise<FoundAgent>) => {
    let agent: FoundAgent | undefined
    try {
      agent = await act()
      const isTask = seconds > 0 && pollsTasks(request)
      const result = await reportOf(agent, isTask ? 0 : seconds, callerOf(request))
      const { structuredContent: report } = result
      return isTask && report.status === 'running' ? taskResult(result, await taskOf(agent, report)) : result
    } catch (error) {
      const reason = await explain(error)
      const text = agent ? `Conversation ${agent.id}: unknown\n\n${reason}` : reason
      return { content: [{ type: 'text' as const, text }], isError: true }
    }
  }

const INSTRUCTIONS =
  'start_agent delegates a task to an agent that has a directory and tools. If a result has `pending`, the agent waits: show the call to a person, and answer with decide. If it has `waiting`, tell a person what waits. If the status is running, call get_agent.'

type McpRequest = DeclaringRequest & {
  readonly signal: AbortSignal
  readonly _meta?: { readonly progressToken?: string | number | undefined } | undefined
  readonly notify: (notification: {
    method: 'notifications/progress'
    params: { progressToken: string | number; progress: number; message: string }
  }) => Promise<void>
}

function callerOf({ signal, _meta, notify }: McpRequest): ReportCaller {
  const progressToken = _meta?.progressToken
  if (progressToken === undefined) return { signal }
  const report = async (progress: number, message: string) =>
    await notify({ method: 'notifications/progress', params: { progressToken, progress, message } })
  return { signal, report }
}
